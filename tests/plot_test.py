#!/usr/bin/env python3
"""`rooftile bench --plot` and `rooftile plot`: each picture is XML that says what the record says.
  plot_test.py ROOFTILE [PART…]"""

import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
rooftile = str(pathlib.Path(sys.argv[1]).resolve())
work = pathlib.Path(tempfile.mkdtemp(prefix="rooftile-plot-"))
complaints = []


def check(holds, sentence):
    if not holds:
        complaints.append(sentence)
        print("plot:", sentence)


def run(*words, code=0, says="", path=None):
    """Runs the command; holds its exit code, and that what it prints holds `says`."""
    environment = {**os.environ, **({} if path is None else {"PATH": str(path)})}
    done = subprocess.run([rooftile, *map(str, words)], cwd=work, env=environment, capture_output=True, text=True)
    told = done.stdout + done.stderr
    check(done.returncode == code, f"rooftile {words}: exit code {done.returncode}, expected {code}: {told[:400]}")
    check(says in told, f"rooftile {words}: lacks {says!r}: {told[:400]}")
    if code:
        check(len(done.stderr.splitlines()) == 1, f"rooftile {words}: its error is no single line: {done.stderr[:400]}")
    return told


def texts(tree):
    return [(element.text, float(element.get("x")), float(element.get("y"))) for element in tree.iter(SVG + "text")]


def groups(tree, name):
    return [g for g in tree.iter(SVG + "g") if g.get("class") == name]


def log_scale(ticks):
    """[(value, place)] of an axis: the function from a place to its value."""
    (low, begin), (high, end) = min(ticks), max(ticks)
    return lambda place: low * (high / low) ** ((place - begin) / (end - begin))


def axes(tree):
    across, up = [], []
    for text, x, y in texts(tree):
        number, _, unit = text.partition(" ")
        below = y > max(y for text, _, y in texts(tree) if text == "GB/s")
        if unit in UNITS and below:
            across.append((float(number) * UNITS[unit], x))
        elif x < 56 and below and text.replace(".", "").isdigit():
            up.append((float(number), y - 4))
    check(len(across) >= 2 and len(up) >= 2, f"axes of {len(across)} and {len(up)} figures")
    return log_scale(across), log_scale(up)


def points_of(tree):
    """{name of a line: [(bytes, GB/s)]}, read off the picture as a person would."""
    x, y = axes(tree)
    lines = {}
    for group in groups(tree, "series"):
        marks = [p.get("transform")[10:-1].split() for p in group.iter(SVG + "path")]
        lines[group.find(SVG + "title").text] = [(x(float(a)), y(float(b))) for a, b in marks]
    return lines


def figures_of(rows):
    """{name of a line: [(bytes, GB/s)]}, of the record."""
    lines = {}
    for row in rows:
        lines.setdefault(row.get("series", "rooftile"), []).append((row["bytes"], row["bytes"] / row["median_us"] / 1e3))
        for peer in row["peers"]:
            lines.setdefault(peer["name"], []).append((row["bytes"], row["bytes"] / peer["median_us"] / 1e3))
    return {name: sorted(points) for name, points in lines.items()}


def agree(where, drawn, recorded):
    check(set(drawn) == set(recorded), f"{where}: lines {sorted(drawn)}, the record has {sorted(recorded)}")
    for name in set(drawn) & set(recorded):
        check(len(drawn[name]) == len(recorded[name]), f"{where}: {name} has {len(drawn[name])} marks")
        for seen, meant in zip(drawn[name], recorded[name]):
            off = max(abs(math.log(a / b)) for a, b in zip(seen, meant))
            check(off < 0.02, f"{where}: {name} stands at {seen}, the record says {meant}")


def picture(path):
    check(path.exists(), f"{path} was not drawn: {sorted(p.name for p in path.parent.glob('*'))}")
    if not path.exists():
        return xml.Element("none")
    tree = xml.parse(path).getroot()
    check(tree.get("role") == "img" and tree.get("aria-labelledby") == "title desc", f"{path}: no role of an image")
    for name in ("title", "desc"):
        found = tree.find(SVG + name)
        check(found is not None and found.get("id") == name and found.text, f"{path}: no {name}")
    said = " ".join(text for text, _, _ in texts(tree))
    for unit in ("GB/s", "KiB", "bytes moved by one call", "Measured: "):
        check(unit in said, f"{path}: its text lacks {unit!r}")
    contrasts(path)
    return tree


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrasts(path):
    """Every colour of a line against its ground, in light and in dark."""
    light, dark = {}, {}
    for style in re.findall(r"<style>(.*?)</style>", path.read_text(), re.S):
        before, _, inside = style.partition("@media (prefers-color-scheme: dark)")
        for colors, text in ((light, before), (dark, inside)):
            colors.update(re.findall(r"\.([-\w]+) { (?:fill|stroke): (#[0-9a-f]{6}) }", text))
    names = {name for name in light if re.fullmatch(r"series-\d|line-series-\d|ink|line-ink", name)}
    check(len(names) == 18 and light.keys() == dark.keys(), f"{path}: colours {sorted(light)} and {sorted(dark)}")
    for name in names:
        for colors in (light, dark):
            high, low = sorted((luminance(colors["ground"]), luminance(colors[name])), reverse=True)
            ratio = (high + 0.05) / (low + 0.05)
            check(ratio >= 3, f"{path}: {name} {colors[name]} has contrast {ratio:.2f} on {colors['ground']}")


def png_size(path):
    head = path.read_bytes()[:24]
    return struct.unpack(">II", head[16:24]) if head[:8] == b"\x89PNG\r\n\x1a\n" else None


def measured():
    """A bench of two variants in three sizes, and the same drawn from its record."""
    run("bench", "add", "--dtype", "f32,f16", "--threads", "1", "--no-baselines", "--variant", "tile,01_scalar",
        "--shape", "1024,8192,65536", "--plot", "a/b", "--json", "add.json", says="picture: a/b/add_f32_1_thread.svg")
    record = json.loads((work / "add.json").read_text())
    check({row["group"] for row in record["results"]} == {"sweep"}, "a plot's rows are of another group")
    for dtype in ("f32", "f16"):
        path = work / f"a/b/add_{dtype}_1_thread.svg"
        tree = picture(path)
        rows = [row for row in record["results"] if row["dtype"] == dtype]
        recorded = figures_of(rows)
        lines = {"rooftile tile"} | ({"rooftile 01_scalar"} if dtype == "f32" else set())  # which takes f32 alone
        check(set(recorded) == lines, f"the record's lines are {set(recorded)}")
        agree(path, points_of(tree), recorded)
        check(len(groups(tree, "copy")) == 1, f"{path}: no line of the copy")
        check(len(groups(tree, "roof")) >= 1, f"{path}: no roof")
        says = tree.find(SVG + "desc").text
        for name in [*recorded, "A copy", "Roof of L1", " GB/s at "]:
            check(name in says, f"{path}: its words lack {name!r}: {says}")
        if shutil.which("rsvg-convert"):
            size = png_size(path.with_suffix(".png"))
            check(size == (2 * int(tree.get("width")), 2 * int(tree.get("height"))), f"{path}: its PNG is {size}")
    run("plot", "add.json", "again")
    for path in (work / "a/b").iterdir():
        check(path.read_bytes() == (work / "again" / path.name).read_bytes(), f"plot draws another {path.name}")
    # The report takes the record, too.
    run("report", "--from", "add.json", "--out", "add.html")


def own_sizes():
    """The op's own series, on the emulated device, where it is quick."""
    if "emulated" not in run("devices", "--no-measure") or "is not there" in run("devices", "--no-measure"):
        return
    run("bench", "softmax", "--forward", "--dtype", "bf16", "--device", "emulated", "--plot", "own", "--json", "own.json")
    rows = json.loads((work / "own.json").read_text())["results"]
    sizes = [row["bytes"] for row in rows]
    check(len(sizes) >= 4 and sizes == sorted(set(sizes)), f"the emulated device's series is {sizes}")
    agree("own", points_of(picture(work / "own/softmax_bf16_emulated.svg")), figures_of(rows))
    # A record goes on line by line: what is there is not measured again.
    words = ["bench", "copy", "--dtype", "f32", "--device", "emulated", "--shape", "256,1024", "--plot", "on", "--json",
             "on.json", "--resume"]
    run(*words, "--variant", "tile")
    run(*words)
    rows = json.loads((work / "on.json").read_text())["results"]
    check([row["series"] for row in rows] == ["rooftile tile"] * 2 + ["rooftile"] * 2, f"went on with {rows}")
    check("nothing was left to measure" in run(*words), "measured again what was there")


def row(bytes, us, **more):
    return {"op": "softmax", "direction": "forward", "variant": "tile", "backend": "cpu", "isa": "avx2", "dtype": "f32",
            "shape": [abs(bytes) % 10**15 // 8], "threads": 2, "cache": "warm", "group": "sweep", "median_us": us, "p5_us": us * 0.9,
            "p95_us": us * 1.2, "bytes": bytes, "copy_us": us / 2, "peers": [], **more}


def recorded():
    """Records as files hold them: baselines, caches, several threads, names and figures of anybody."""
    peers = [{"name": "PyTorch", "median_us": 3.0}, {"name": "oneDNN", "median_us": 5.0, "p5_us": 4.0, "p95_us": 9.0}]
    machine = {"cpu": "A CPU", "caches": [{"level": 1, "kind": "data", "bytes": 32768, "shared_by": 1},
                                          {"level": 1, "kind": "instruction", "bytes": 999, "shared_by": 1}],
               "levels": [{"name": "L1", "threads": 1, "copy_gbs": 150.0}, {"name": "L1", "threads": 2, "copy_gbs": 300.0},
                          {"name": "memory", "threads": 2, "copy_gbs": 20.0}]}
    record = {"schema": 1, "machine": machine, "date": "2026-01-02T03:04:05Z", "results": [
        row(2**12, 1.0, peers=peers), row(2**20, 40.0, peers=peers[:1]), row(2**14, 2.0, peers=peers),
        row(2**14, 2.5, dtype="bf16"), row(2**15, 2.5, dtype="bf16", series="rooftile tile"),
        row(2**15, 2.5, dtype="f64"), row(2**10, 0.5, group="best")]}
    (work / "some.json").write_text(json.dumps(record))
    run("plot", "some.json", "some")
    check({p.stem for p in (work / "some").iterdir()} == {"softmax_f32_2_threads", "softmax_bf16_2_threads"},
          f"drawn: {sorted(p.name for p in (work / 'some').iterdir())}")
    tree = picture(work / "some/softmax_f32_2_threads.svg")
    agree("some", points_of(tree), figures_of([r for r in record["results"] if r["dtype"] == "f32" and r["group"] == "sweep"]))
    x, y = axes(tree)
    copy = [tuple(map(float, p.split(","))) for p in groups(tree, "copy")[0].find(SVG + "polyline").get("points").split()]
    seen = [(x(a), y(b)) for a, b in copy]
    agree("the copy", {"": seen}, {"": [(2**12, 8.192), (2**14, 16.384), (2**20, 52.4288)]})
    # The roofs of two threads: two first caches' bytes, then memory.
    roofs = {g.find(SVG + "title").text: g.find(SVG + "polyline").get("points").split() for g in groups(tree, "roof")}
    check(set(roofs) == {"L1: 300 GB/s", "memory: 20.0 GB/s"}, f"roofs: {roofs}")
    end = x(float(roofs["L1: 300 GB/s"][1].split(",")[0]))
    check(abs(end / 65536 - 1) < 0.02, f"L1 of two threads ends at {end}")

    long = "a line with a name that nobody would give it, " * 4
    hostile = [row(2**k, 1.0, series="<b>&\u0001\n\"'", op="../../<x>") for k in (10, 12)]
    hostile += [row(2**k, 2.0, op="../../<x>", series=long) for k in (10, 12)]
    hostile += [row(2**k, 1.0, op="..\u00e9..<x>") for k in (10, 11)]
    hostile += [row(2**11, 0, op="../../<x>"), row(0, 1.0, op="../../<x>"), row(-8, -1.0, op="../../<x>"),
                row(2**13, 1e-300, op="../../<x>"), row(2**13, 1e300, op="../../<x>"), row(10**300, 1.0, op="../../<x>")]
    hostile += [row(2**k, 1.0, op="many", series=f"line {i}") for k in (10, 20) for i in range(40)]
    record["results"] = hostile
    (work / "hostile.json").write_text(json.dumps(record))
    run("plot", "hostile.json", "hostile")
    drawn = sorted(p.name for p in (work / "hostile").glob("*.svg"))
    check(drawn == ["many_f32_2_threads.svg", "x_f32_2_threads.svg", "x_f32_2_threads_2.svg"], f"drawn: {drawn}")
    lines = points_of(xml.parse(work / "hostile/x_f32_2_threads.svg").getroot())
    check(set(lines) == {"<b>&  \"'", long} and all(len(points) == 2 for points in lines.values()), f"hostile: {lines}")
    tree = xml.parse(work / "hostile/many_f32_2_threads.svg").getroot()
    check(len(points_of(tree)) == 40, "not 40 lines")
    names = [(x, y) for text, x, y in texts(tree) if text.startswith("line ")]
    check(len(set(names)) == 40 and all(x < float(tree.get("width")) - 40 for x, _ in names), "names on each other")


def refusals():
    run("bench", "add", "--shape", "64", "--plot", "p", code=2, says="speed against size, and --shape names one")
    run("bench", "add", "--shape", "64,64", "--plot", "p", code=2, says="--shape names one")
    run("bench", "add", "--plot", "-", code=2, says="--plot needs a folder")
    run("bench", "add", "--plot", "", code=2, says="an empty value")
    run("bench", "add", "--plot", "p", "--device", "emulated", "--part", "1/2", code=2, says="rooftile plot FILE DIR")
    run("bench", "--merge", "a.json", "--json", "b.json", "--plot", "p", code=2, says="rooftile plot FILE DIR")
    run("bench", "rgb_to_gray", "--dtype", "f32", "--plot", "p", code=2, says="no case fits")
    run("bench", "softmax", "--shape", "64,128", "--plot", "p", code=2, says="softmax takes")
    check(not (work / "p").exists(), "a refused plot made its folder")
    (work / "file").write_text("x")
    run("bench", "add", "--plot", "file", code=3, says="is not a folder")
    run("bench", "add", "--plot", "file/below", code=3, says="cannot be written")
    run("plot", "add.json", "file", code=3, says="is not a folder")
    run("plot", "add.json", code=2, says="DIR is required")
    run("plot", "absent.json", "p", code=3, says="absent.json")
    (work / "none.json").write_text('{"results": []}')
    run("plot", "none.json", "p", code=3, says="no rooftile record")
    (work / "none.json").write_text(json.dumps({"schema": 1, "results": [row(2**10, 1.0)]}))
    run("plot", "none.json", "p", code=3, says="holds no speed against size")
    if os.geteuid() != 0:
        (work / "closed").mkdir(mode=0o500)
        run("bench", "add", "--plot", "closed", code=3, says="cannot be written")
        run("bench", "add", "--plot", "closed/below", code=3, says="cannot be written")


def rasterizer():
    """PNG is by a program that may be missing, or fail."""
    (work / "tools").mkdir()
    run("plot", "some.json", "svg_only", says="install the package librsvg2-bin", path=work / "tools")
    check(not list((work / "svg_only").glob("*.png")) and len(list((work / "svg_only").glob("*.svg"))) == 2,
          "without rsvg-convert the SVG files are not alone")
    for script in ("exit 1", "echo no picture"):
        tool = work / "tools/rsvg-convert"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        run("plot", "some.json", "failed", code=3, says="could not make a PNG", path=work / "tools")
        check(not list((work / "failed").glob("*.png")), "a PNG that is none")


for part in [globals()[name] for name in sys.argv[2:]] or (measured, own_sizes, recorded, refusals, rasterizer):
    part()
shutil.rmtree(work)
sys.exit(f"plot: {len(complaints)} complaints" if complaints else 0)
