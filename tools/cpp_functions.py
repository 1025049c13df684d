"""Where the functions of a C++ file begin and end, by a brace scanner: no preprocessor, no types, good enough to count
lines. Lambdas outside functions count as functions; what lies inside a function is part of it.
"""

import re

_TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>\b(?:u8|u|U|L)?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
      | (?P<string>(?:\b(?:u8|u|U|L))?"(?:\\.|[^"\\\n])*")
      | (?P<number>\b\d(?:'?\w|\.|(?<=[eEpP])[+-])*)
      | (?P<char>(?:\b(?:u8|u|U|L))?'(?:\\.|[^'\\\n])+')
      | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
_ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:(?!:)")
_LAMBDA_END = re.compile(r"(?<![\w\]])\[[^\[\]]*\]\s*(?:<[^{}]*>)?\s*(?:\([^{}]*\))?\s*"
                         r"(?:mutable|constexpr|noexcept|->\s*[\w:<>,\s*&]+)?\s*$")
_TRAILER = re.compile(r"\)\s*(?:const|volatile|noexcept|override|final|try|mutable|&&?|\s)*(?:->[^;{}=]*)?$")
_INITIALISERS = re.compile(r"\)\s*(?:noexcept|\s)*:(?!:)")


def blank(text):
    """`text` with comments, literals and directives overwritten by spaces; line breaks stay where they are."""
    def cover(match):
        if match.lastgroup == "number" or match["number"]:
            return re.sub(r"'", "_", match[0])
        return re.sub(r"[^\n]", " ", match[0])
    return _TOKEN.sub(cover, text)


def _without_groups(head):
    """`head` with what stands in (), [] and template<> removed, brackets of () kept as `()`."""
    head = re.sub(r"\[\[.*?\]\]", " ", head, flags=re.DOTALL)
    head = re.sub(r"\b(?:alignas|__attribute__|decltype|noexcept|requires|explicit)\s*"
                  r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", " ", head)
    head = re.sub(r"\brequires\b[^(){}]*$", " ", head)
    out, depth = [], 0
    for char in head:
        if char == ")":
            depth -= 1
        if depth == 0:
            out.append(char)
        if char == "(":
            depth += 1
    text = "".join(out)
    while True:
        match = re.search(r"\btemplate\s*<", text)
        if not match:
            return text
        end, level = match.end(), 1
        while end < len(text) and level:
            level += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        text = text[:match.start()] + " " + text[end:]


def _kind(head, parens):
    """What a `{` after `head` opens: "function", "scope", "member" (brace of a member initialiser) or "value"."""
    if _LAMBDA_END.search(head):
        return "function"
    if parens:
        return "value"
    flat = _without_groups(head).strip()
    if re.search(r"(?<![=!<>+\-*/%&|^])=(?!=)", re.sub(r"\boperator\s*\S+", "", flat)):
        return "value"
    initialisers = _INITIALISERS.search(flat)
    if initialisers and re.search(r"[\w>]$", flat):
        return "member"
    if initialisers or _TRAILER.search(flat):
        return "function"
    if _SCOPE.search(flat):
        return "scope"
    return "value"


def _name(head):
    macro = re.match(r"[A-Z][A-Z_]+\([^()]*\)", head.lstrip())
    if macro:
        return re.sub(r"\s+", " ", macro[0])
    flat = _without_groups(head)
    match = re.search(r"(operator\s*\S{1,3}|~?[\w:]+(?:<[^()]*>)?)\s*\(", flat)
    return match[1].strip() if match else "lambda"


def functions(text):
    """[(name, first line, last line)], 1-based, inclusive, from the first line of the signature to the closing brace.

    Raises ValueError with a line number where the braces do not balance.
    """
    code = blank(text)
    found = []
    stack = []  # (kind, head start, parens outside)
    start, parens, inside = 0, 0, 0
    for position, char in enumerate(code):
        if inside:  # of a function: only its end matters
            inside += {"{": 1, "}": -1}.get(char, 0)
            if inside == 0:
                kind, begin, parens = stack.pop()
                first = code.count("\n", 0, begin) + 1
                found.append((_name(code[begin:position].split("{", 1)[0]), first, code.count("\n", 0, position) + 1))
                if parens == 0 and not (stack and stack[-1][0] == "value"):
                    start = position + 1
            continue
        if char == "(":
            parens += 1
        elif char == ")":
            parens -= 1
        elif char == ";" and parens == 0:
            start = position + 1
        elif char == "{":
            head = code[start:position]
            access = _ACCESS.match(head)
            while access:
                start += access.end()
                head = code[start:position]
                access = _ACCESS.match(head)
            kind = _kind(head, parens)
            inner = kind == "function" and parens and _LAMBDA_END.search(head)
            begin = start + (inner.start() if inner else len(head) - len(head.lstrip()))
            stack.append((kind, begin if kind == "function" else start, parens))
            if kind == "function":
                inside = 1
            elif kind == "scope" or kind == "value":
                start = position + 1
            parens = 0
        elif char == "}":
            if not stack:
                raise ValueError(f"line {code.count(chr(10), 0, position) + 1}: a closing brace without its opening one")
            kind, begin, parens = stack.pop()
            start = position + 1 if kind == "scope" else begin
        elif char == "," and stack and stack[-1][0] == "value" and parens == 0:
            start = position + 1
    if stack:
        raise ValueError(f"line {code.count(chr(10), 0, stack[-1][1]) + 1}: an opening brace without its closing one")
    return found
