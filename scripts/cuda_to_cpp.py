#!/usr/bin/env python3
"""Writes a CUDA program as C++ for the emulated device: what is not C++ there is rewritten, and lines stay where they are.
    cuda_to_cpp.py FILE.cu > FILE.cpp
    kernel<<<grid, block>>>(x, n)     →  a call of program::launch (rooftile/backend/emulated/program/runtime.h)
    __shared__ float part[256];       →  ROOFTILE_SHARED(part, float[256]);
    extern __shared__ float all[];    →  float* const all = …
A template's kernel is launched with its arguments written out: kernel<float><<<…>>>(…).
"""
import re
import sys

LAUNCH = "::rooftile::emulated::program::launch"
CONFIGURATION = "::rooftile::emulated::program::Configuration"


def blanked(text):
    """The text with comments and literals blanked out, every character at its place."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def refuse(path, text, at, why):
    sys.exit(f"{path}:{text.count(chr(10), 0, at) + 1}: {why}")


def closing(path, code, at):
    """The place of the parenthesis that closes the one at `at`."""
    depth = 0
    for place in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    refuse(path, code, at, "this parenthesis is never closed")


def launches(path, text, code):
    for found in re.finditer(r"<<<", code):
        at, end = found.start(), code.find(">>>", found.end())
        begin = at
        name = re.search(r"([A-Za-z_][\w:]*)\s*(<[^;{}<]*>)?\s*$", code[:at])
        opening = re.match(r"\s*\(", code[end + 3:]) if end > 0 else None
        if not name or not opening:
            refuse(path, text, at, "a launch is kernel<<<grid, block>>>(arguments)")
        begin = name.start()
        opening = end + 3 + opening.end() - 1
        close = closing(path, code, opening)
        kernel, configuration = text[begin:at].strip(), text[found.end():end]
        arguments = text[opening + 1:close]
        comma = ", " if arguments.strip() else ""
        yield begin, close + 1, (f'{LAUNCH}("{name[1]}", {CONFIGURATION}({configuration}), {kernel}{comma}{arguments})')


def shared_arrays(path, text, code):
    for found in re.finditer(r"\b(extern\s+)?__shared__\s+([^;]*);", code):
        dynamic, declared = found[1], found[2]
        first = re.match(r"(.*?)([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)(,.*)?$", declared, re.S)
        if not first or not first[1].strip():
            refuse(path, text, found.start(), "write a shared array as __shared__ type name[size];")
        kind = re.sub(r"\b(alignas|__align__)\s*\([^)]*\)", "", first[1]).strip()  # an array begins at 1024 bytes anyway
        if dynamic:
            bytes_ = f"{first[2]}_bytes"
            new = f"ROOFTILE_DYNAMIC_SHARED({bytes_}); {kind}* const {first[2]} = reinterpret_cast<{kind}*>({bytes_});"
        else:
            arrays = re.findall(r"([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)", first[2] + first[3] + (first[4] or ""))
            new = " ".join(f"ROOFTILE_SHARED({name}, {kind}{size.strip()});" for name, size in arrays)
        yield found.start(), found.end(), new + "\n" * found[0].count("\n")


def rewritten(path):
    with open(path) as file:
        text = file.read()
    code = blanked(text)
    out, last = [f'#line 1 "{path}"\n'], 0
    for begin, end, new in sorted([*launches(path, text, code), *shared_arrays(path, text, code)]):
        out += [text[last:begin], new]
        last = end
    return "".join(out) + text[last:]


if len(sys.argv) != 2:
    sys.exit(__doc__)
sys.stdout.write(rewritten(sys.argv[1]))
