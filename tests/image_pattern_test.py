#!/usr/bin/env python3
"""`rooftile image pattern`: its pictures, read by this file's own decoder of PNG and animated PNG, hold the equation.
image_pattern_test.py ROOFTILE"""

import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

rooftile = str(pathlib.Path(sys.argv[1]).resolve())
complaints = []


def check(holds, sentence):
    if not holds:
        complaints.append(sentence)
        print("image pattern:", sentence)


def run(work, *words, code=0, says=""):
    """Runs the command: its exit code and what it says; where it fails, no file is left."""
    before = sorted(work.iterdir())
    done = subprocess.run([rooftile, "image", "pattern", *words], cwd=work, capture_output=True, text=True)
    told = done.stdout + done.stderr
    check(done.returncode == code, f"{words}: exit code {done.returncode}, expected {code}: {told[:400]}")
    check(says in told, f"{words}: lacks {says!r}: {told[:400]}")
    if code:
        check(len(done.stderr.splitlines()) == 1, f"{words}: its error is no single line: {done.stderr[:400]}")
        check(sorted(work.iterdir()) == before, f"{words}: files changed: {sorted(work.iterdir())}")


def chunks(png):
    """[(type, content)], each with its length and its sum as they should be."""
    check(png[:8] == b"\x89PNG\r\n\x1a\n", "the signature is not PNG's")
    found, at = [], 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        content = png[at + 8 : at + 8 + length]
        check(struct.unpack_from(">I", png, at + 8 + length)[0] == zlib.crc32(kind + content), f"{kind}: a wrong sum")
        found.append((kind.decode(), content))
        at += 12 + length
    check(found[0][0] == "IHDR" and found[-1] == ("IEND", b""), f"begins {found[0]}, ends {found[-1]}")
    return found


def pixels(data, width, height):
    """Rows of red, green, blue, their filters undone."""
    raw, stride = zlib.decompress(data), 3 * width
    check(len(raw) == (stride + 1) * height, f"{len(raw)} bytes of {width}x{height} pixels")
    rows, above = [], bytes(stride)
    for row in range(height):
        kind, line = raw[row * (stride + 1)], bytearray(raw[row * (stride + 1) + 1 : (row + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = line[i - 3] if i >= 3 else 0, above[i], above[i - 3] if i >= 3 else 0
            near = left + up - corner
            paeth = min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]
            line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth)[kind]) % 256
        rows.append(bytes(line))
        above = line
    return rows


def holds_equation(rows, time, name):
    """Each sample is the equation's at this time, rounded; where that is a tie within 0.001, either neighbour."""
    wrong = 0
    for i, row in enumerate(rows):
        for j in range(len(row) // 3):
            for c, angle in enumerate((0.01 * j + time, 0.01 * i + 0.7 * time, 0.01 * (i + j) + 1.3 * time)):
                exact = 255 * (0.5 + 0.5 * math.sin(angle))
                wrong += abs(row[3 * j + c] - exact) > 0.501
    check(wrong == 0, f"{name}: {wrong} samples are not the equation's at {time} s")


def still(png, name):
    """(width, height, rows) of a picture that must be no animation."""
    found = chunks(png)
    check(not {"acTL", "fcTL", "fdAT"} & {kind for kind, _ in found}, f"{name}: one frame is an animation")
    width, height, *form = struct.unpack(">IIBBBBB", found[0][1])
    check(form == [8, 2, 0, 0, 0], f"{name}: {form}, not 8 bits of red, green, blue")
    return width, height, pixels(b"".join(content for kind, content in found if kind == "IDAT"), width, height)


def animation(png, name):
    """(frames per second, [rows of each frame]): in the order that the APNG specification asks for."""
    found = chunks(png)
    kinds = [kind for kind, _ in found]
    width, height, *_ = struct.unpack(">IIBBBBB", found[0][1])
    check(kinds.count("acTL") == 1 and kinds.index("acTL") < kinds.index("IDAT"), f"{name}: no acTL before the data")
    count, plays = struct.unpack(">II", found[kinds.index("acTL")][1])
    check(plays == 0, f"{name}: plays {plays} times, not for ever")
    sequence, datas, rates = 0, [], set()
    for kind, content in found:
        if kind in ("fcTL", "fdAT"):
            check(struct.unpack_from(">I", content)[0] == sequence, f"{name}: {kind} is not number {sequence}")
            sequence += 1
        if kind == "fcTL":
            _, *place, delay, per, dispose, blend = struct.unpack(">IIIIIHHBB", content)
            check(place == [width, height, 0, 0], f"{name}: a frame of {place} in {width}x{height}")
            check((delay, dispose, blend) == (1, 0, 0), f"{name}: a frame's delay, dispose, blend: {delay, dispose, blend}")
            rates.add(per)
            datas.append(b"")
        if kind == "IDAT":
            check(len(datas) == 1, f"{name}: IDAT in frame {len(datas)}")
        if kind in ("IDAT", "fdAT"):
            datas[-1] += content[4 if kind == "fdAT" else 0 :]
    check(len(datas) == count, f"{name}: {len(datas)} frames, {count} are announced")
    check(len(rates) == 1, f"{name}: rates {rates}")
    return rates.pop(), [pixels(data, width, height) for data in datas]


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="rooftile-pattern-"))
    read = lambda name: (work / name).read_bytes()

    run(work, "default.png", says="640x480, 1 frame in ")
    width, height, rows = still(read("default.png"), "default.png")
    check((width, height) == (640, 480), f"default.png is {width}x{height}")
    holds_equation(rows[:9], 0, "default.png")
    run(work, "--size", "37x23", "--time", "1e9", "--output", "late.PNG", says="written to late.PNG")
    width, height, rows = still(read("late.PNG"), "late.PNG")
    check((width, height) == (37, 23), f"late.PNG is {width}x{height}")
    holds_equation(rows, 1e9, "late.PNG")
    run(work, "late.png", "--size", "37x23", "--time", "1e9")
    check(read("late.png") == read("late.PNG"), "the same frame is another file")
    run(work, "one.png", "--size", "1x1")
    holds_equation(still(read("one.png"), "one.png")[2], 0, "one.png")
    for name in ("a.jpg", "a.JPEG"):
        run(work, name, "--size", "40x20")
        check(read(name)[:2] == b"\xff\xd8", f"{name} is no JPEG")

    run(work, "moving.png", "--size", "41x19", "--frames", "5", "--fps", "12", "--time", "-0.5", says="41x19, 5 frames in ")
    rate, frames = animation(read("moving.png"), "moving.png")
    check((rate, len(frames)) == (12, 5), f"moving.png: {len(frames)} frames, {rate} per second")
    for k, rows in enumerate(frames):
        holds_equation(rows, -0.5 + k / 12, f"frame {k}")
    # Frames whose data take more than one chunk (libpng's are 8 KiB), and a reader that knows no animations.
    run(work, "large.png", "--size", "700x300", "--frames", "2")
    check([kind for kind, _ in chunks(read("large.png"))].count("fdAT") > 1, "a frame of 700x300 is one chunk")
    rate, frames = animation(read("large.png"), "large.png")
    check(rate == 30, f"large.png: {rate} frames per second")
    holds_equation(frames[1], 1 / 30, "large.png's second frame")
    subprocess.run([rooftile, "image", "gray", "large.png", "gray.png"], cwd=work, check=True, capture_output=True)

    (work / "there.png").write_bytes(b"before")
    for words, code, says in (
        ([], 2, "--output is required"),
        (["a.gif"], 2, '".gif"; .png, .jpg and .jpeg can be written'),
        (["a.png", "--size", "0x480"], 2, "--size is 0x480 pixels; 1 to 2^28 pixels can be drawn"),
        (["a.png", "--size", "640"], 2, "a width and a height"),
        (["a.png", "--size", "640x480x3"], 2, "a width and a height"),
        (["a.png", "--size", "wide"], 2, "wide"),
        (["a.png", "--size", "16385x16384"], 2, "2^28 pixels"),
        (["a.png", "--size", "4294967296x4294967296"], 2, "2^28 pixels"),
        (["a.png", "--frames", "0"], 2, "--frames"),
        (["a.png", "--fps", "0"], 2, "--fps"),
        (["a.png", "--time", "1e17"], 2, "t is 1e+17"),
        (["a.png", "--time", "nan"], 2, "nan"),
        (["b.jpg", "--frames", "2"], 2, "a JPEG holds one frame, 2 are to be written; name a .png"),
        (["missing/a.png"], 3, "missing"),
        (["there.png/a.png"], 3, "there.png"),
    ):
        run(work, *words, code=code, says=says)
    check(read("there.png") == b"before", "there.png was changed")
    for file in work.iterdir():
        file.unlink()
    work.rmdir()
    print(f"image pattern: {len(complaints)} problems")
    return bool(complaints)


sys.exit(main())
