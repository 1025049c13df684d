#!/usr/bin/env python3
"""Writes the tokenizer of a GGUF file as a GGUF file without tensors, packed into a .tar.xz.

usage: strip_gguf.py MODEL.gguf OUT.tar.xz    (the member is OUT.gguf)

Keeps general.architecture and every tokenizer.* key, byte for byte and in order.
"""

import io
import pathlib
import struct
import sys
import tarfile

SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


def skip_string(data, at):
    (length,) = struct.unpack_from("<Q", data, at)
    return at + 8 + length


def skip_value(data, at, kind):
    if kind == STRING:
        return skip_string(data, at)
    if kind == ARRAY:
        element, count = struct.unpack_from("<IQ", data, at)
        at += 12
        if element in SCALAR_BYTES:
            return at + SCALAR_BYTES[element] * count
        for _ in range(count):
            at = skip_value(data, at, element)
        return at
    return at + SCALAR_BYTES[kind]


def strip(data):
    magic, version, _tensors, keys = struct.unpack_from("<4sIQQ", data, 0)
    if magic != b"GGUF" or version not in (2, 3):
        sys.exit("not a GGUF file of version 2 or 3")
    at = 24
    kept = []
    for _ in range(keys):
        begin = at
        at = skip_string(data, at)
        name = data[begin + 8 : at].decode()
        (kind,) = struct.unpack_from("<I", data, at)
        at = skip_value(data, at + 4, kind)
        if name == "general.architecture" or name.startswith("tokenizer."):
            kept.append(data[begin:at])
    return struct.pack("<4sIQQ", b"GGUF", version, 0, len(kept)) + b"".join(kept)


def main():
    if len(sys.argv) != 3 or not sys.argv[2].endswith(".tar.xz"):
        sys.exit(__doc__)
    stripped = strip(pathlib.Path(sys.argv[1]).read_bytes())
    member = tarfile.TarInfo(pathlib.Path(sys.argv[2]).name.removesuffix(".tar.xz") + ".gguf")
    member.size = len(stripped)
    with tarfile.open(sys.argv[2], "w:xz", preset=9) as out:
        out.addfile(member, io.BytesIO(stripped))


if __name__ == "__main__":
    main()
