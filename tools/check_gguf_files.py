#!/usr/bin/env python3
"""What hone quantize writes, read by the `gguf` package: another reader's view of the same file.

    tools/check_gguf_files.py HONE SOURCE...

Each SOURCE (a GGUF file or a Hugging Face folder) is written in every type that hone writes. The package must open the
file, find the architecture and the tensors that hone reports, in their types and sizes, and decode each quantised
tensor to within the relative error that hone printed for it of the source's f32 form. Exit status 1 on a difference.
Needs gguf==0.19.0 (scripts/test --long installs it into a folder of its own).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy

TYPES = ["f16", "bf16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0", "iq4_nl"]


def write(hone, source, kind, folder):
    """(hone's report, the package's reader) of `source` written as `kind`."""
    path = pathlib.Path(folder, f"{kind}.gguf")
    done = subprocess.run([hone, "quantize", source, "--to", kind, "-o", str(path), "--json"], capture_output=True, check=True)
    return json.loads(done.stdout), gguf.GGUFReader(path)


def values(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float64).ravel()


def check(hone, source):
    """Problems found, as lines."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        _, exact = write(hone, source, "f32", folder)
        exact = {tensor.name: values(tensor) for tensor in exact.tensors}
        for kind in TYPES:
            report, reader = write(hone, source, kind, folder)
            if "general.architecture" not in reader.fields:
                found.append(f"{source} as {kind}: no general.architecture")
            theirs = {tensor.name: tensor for tensor in reader.tensors}
            if set(theirs) != {tensor["name"] for tensor in report["tensors"]}:
                found.append(f"{source} as {kind}: other tensors than reported")
                continue
            for tensor in report["tensors"]:
                other = theirs[tensor["name"]]
                where = f"{source} as {kind}, {tensor['name']}"
                if other.tensor_type.name.lower() != tensor["to"]:
                    found.append(f"{where}: {other.tensor_type.name}, reported as {tensor['to']}")
                    continue
                if other.n_bytes != tensor["bytes_after"]:
                    found.append(f"{where}: {other.n_bytes} bytes, reported as {tensor['bytes_after']}")
                reference = exact[tensor["name"]]
                norm = numpy.linalg.norm(reference)
                error = numpy.linalg.norm(values(other) - reference) / norm if norm else 0.0
                # The report's figure and this one differ by the rounding of their sums only.
                if abs(error - tensor["relative_error"]) > 1e-6 + 1e-4 * tensor["relative_error"]:
                    found.append(f"{where}: relative error {error:.8f}, reported as {tensor['relative_error']:.8f}")
    return found


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    problems = []
    for source in sys.argv[2:]:
        found = check(sys.argv[1], source)
        print(f"{source}: {len(TYPES)} types, {len(found)} differences", flush=True)
        problems += found
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
