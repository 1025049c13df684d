#!/usr/bin/env python3
"""Writes src/tokens/unicode_case_table.inc: the case mappings of Python's str.upper, lower and title.

Rows are {first, last, stride, distance}: every stride-th code point of the range maps to itself plus the distance. What maps
to several characters stands in a list of its own. The version of Unicode is that of the Python at hand.

    python3 tools/make_unicode_case.py > src/tokens/unicode_case_table.inc
"""
import sys
import unicodedata


def mapping(method):
    """{code point: text} for all that change."""
    out = {}
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000 or code == 0x3A3:
            continue
        changed = getattr(chr(code), method)()
        if changed != chr(code):
            out[code] = changed
    return out


def ranges(pairs):
    """Groups (code, distance) into rows of stride 1 or 2."""
    rows = []
    for code, distance in pairs:
        if rows:
            first, last, stride, known = rows[-1]
            step = code - last
            if known == distance and step <= 2 and (first == last or step == stride):
                rows[-1] = (first, code, step, distance)
                continue
        rows.append((code, code, 1, distance))
    return rows


def print_rows(rows, width):
    for begin in range(0, len(rows), width):
        print("    " + " ".join(rows[begin:begin + width]))


def main():
    print(f"// Made by tools/make_unicode_case.py from Unicode {unicodedata.unidata_version}. U+03A3 is left out of it.")
    for method in ("upper", "lower", "title"):
        table = mapping(method)
        simple = [(code, ord(text) - code) for code, text in sorted(table.items()) if len(text) == 1]
        several = [(code, text) for code, text in sorted(table.items()) if len(text) > 1]
        rows = ranges(simple)
        print(f"constexpr std::array<CaseRange, {len(rows)}> k{method.title()}Ranges{{{{")
        print_rows(["{0x%X, 0x%X, %d, %d}," % row for row in rows], 4)
        print("}};")
        print(f"constexpr std::array<CaseSpecial, {len(several)}> k{method.title()}Specials{{{{")
        letters = [(code, *[ord(c) for c in text], *[0] * (3 - len(text))) for code, text in several]
        print_rows(["{0x%X, {0x%X, 0x%X, 0x%X}}," % row for row in letters], 3)
        print("}};")
    return 0


if __name__ == "__main__":
    sys.exit(main())
