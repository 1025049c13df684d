#!/usr/bin/env python3
"""The loops that measure this machine's arithmetic peaks do the operations that they are counted for.

    tools/check_peaks.py PROGRAM

src/kernels/peaks.cc credits every round of a loop with one operation of each of its independent chains (kChains; kTileChains of
tiles). A compiler that sees that the chains are equal computes one for all, and the peak comes out too high. So each loop's function must hold as many
arithmetic instructions as there are chains. Prints what it found; exit status 1 if one holds fewer, or is missing.
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src/kernels/peaks.cc"
LOOPS = {"fma_avx2": "vfmadd", "fma_avx512": "vfmadd", "int8_avx2": "vpmaddubsw", "int8_avx512": "vpdpbusd",
         "bf16_avx512": "vdpbf16ps", "bf16_amx": "tdpbf16ps", "int8_amx": "tdpbssd"}


def functions(program):
    """{function: its instructions as text} of the loops in `program`."""
    found = {}
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", program], capture_output=True, text=True,
                          check=True).stdout
    for block in text.split("\n\n"):
        name = re.search(r"<.*?(\w+)\(\)>:", block)
        if name and name[1] in LOOPS:
            found[name[1]] = block
    return found


def main():
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[2].strip(), file=sys.stderr)
        return 2
    source = SOURCE.read_text(encoding="utf-8")
    found = functions(sys.argv[1])
    status = 0
    for loop, instruction in LOOPS.items():
        name = "kTileChains" if loop.endswith("_amx") else "kChains"
        chains = int(re.search(rf"{name} = (\d+);", source)[1])
        count = len(re.findall(rf"\s{instruction}", found.get(loop, "")))
        print(f"{loop}: {count} {instruction}, {chains} chains")
        status |= count < chains
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
