"""What MkDocs builds the site from: the repository's pages, where they stand.

Each .md file is a page under its own path, so that links between pages are the same on GitHub and on the site. A linked source
file becomes a page of its code; a linked record or picture is copied; a linked folder is its README. GitHub reads CommonMark and
MkDocs does not: `python_markdown` writes what differs anew.
"""

import json
import os
import posixpath
import re
import subprocess
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
REPORT = "report_sample.html"  # drawn by scripts/site.sh
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".py": "python", ".sh": "sh", ".cmake": "cmake", ".json": "json"}
COPIED = (".json", ".svg", ".png", ".html")
LINK = re.compile(r'(\]\(|(?:href|src)=")([^)"\s]+)')


def tracked():
    """The repository's files: tracked, or new and not ignored; without git, all but hidden ones and build folders."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    files = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [path.as_posix() for path in files if path.parts[0] != "build" and not any(p.startswith(".") for p in path.parts)]


def fenced(lines):
    """Pairs (line, whether it lies in a code block, its fences included)."""
    fence = ""
    for line in lines:
        text = line.strip()
        run = re.match(r"`{3,}|~{3,}", text)
        if fence:
            yield line, True
            if run and run[0] == text and text.startswith(fence):
                fence = ""
        elif run and "`" not in text[len(run[0]):]:
            fence = run[0]
            yield line, True
        else:
            yield line, False


def without_code(text):
    """The text with code blocks and inline code blanked out."""
    plain = "\n".join("" if code else line for line, code in fenced(text.split("\n")))
    return re.sub(r"`[^`\n]*`", "", plain)


def repository_path(page, target):
    """The path that a page's link names, from the repository's root; None for one that leads outside."""
    if re.match(r"[a-z]+:|#", target):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target.split("#")[0]))


def page_of(path):
    """The page that stands for a path of the repository: itself, a folder's README, or a page of the file's code."""
    if path.endswith(".md") or path.endswith(COPIED):
        return path
    if (ROOT / path).is_dir():
        readme = posixpath.normpath(posixpath.join(path, "README.md"))
        return readme if (ROOT / readme).is_file() else f"source/{path}.md"
    return f"source/{path}.md"


def code_page(path):
    """A file's code, or a folder's list of files, as a page that the search leaves out."""
    front = "---\nsearch: {exclude: true}\nhide: [toc]\n---\n"
    if (ROOT / path).is_dir():
        names = sorted(name for name in tracked() if name.startswith(path + "/"))
        return front + f"# {path}/\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"
    text = (ROOT / path).read_text()
    language = "cmake" if path.endswith("CMakeLists.txt") else LANGUAGES.get(posixpath.splitext(path)[1], "text")
    return front + f"# {posixpath.basename(path)}\n\n`{path}`\n\n``````{language} linenums=\"1\"\n{text.rstrip()}\n``````\n"


def on_files(files, config):
    pages = {name: (ROOT / name).read_text() for name in tracked() if name.endswith(".md")}
    linked = set()
    for page, text in pages.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
        for _, target in LINK.findall(without_code(text)):
            path = repository_path(page, target)
            if path and path not in pages and (ROOT / path).exists():
                linked.add(path)
    for path in linked:
        uri = page_of(path)
        if uri.startswith("source/"):
            files.append(File.generated(config, uri, content=code_page(path)))
        elif uri not in pages:
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    report = os.environ.get("ROOFTILE_REPORT_SAMPLE")
    if report:
        files.append(File.generated(config, REPORT, abs_src_path=report))
    return files


def lessons_of(section):
    """A section's pages that are there, with their numbers: "27–29 · Sigmoid, tanh"; several lessons may share a page."""
    by_file = {}
    for lesson in section["lessons"]:
        file = lesson["file"].split("#")[0]
        if (ROOT / file).is_file():
            by_file.setdefault(file, []).append(lesson)
    for file, lessons in by_file.items():
        first, last = lessons[0]["number"], lessons[-1]["number"]
        title = re.sub(r"[`*]", "", lessons[0]["title"])
        title = re.sub(r" \([^)]*\)$", "", title)
        yield {f"{first if first == last else f'{first}–{last}'} · {title}": file}
        for more in (page for lesson in lessons for page in lesson.get("continued", [])):
            if (ROOT / more["file"]).is_file():
                yield {f"{last}, continued · {more['title']}": more["file"]}


def equation(source, language, css_class, options, md, **kwargs):
    """A block of GitHub's ```math as MathML, which browsers set by themselves."""
    return f'<div class="{css_class}">{convert(source, display="block")}</div>'


def on_config(config):
    course = json.loads((ROOT / "docs/course/course.json").read_text())
    sections = [{section["title"]: pages} for section in course if (pages := list(lessons_of(section)))]
    report = [{"Report, a sample": REPORT}] if os.environ.get("ROOFTILE_REPORT_SAMPLE") else []
    config.nav = [
        {"rooftile": "README.md"},
        {"Course": ["docs/course/README.md", *sections]},
        {"Reference": [{"Functions": "docs/reference.md"}, {"Python": "python/README.md"},
                       {"Every kernel in Python's languages": "docs/versions.md"}]},
        {"Guides": [{"CUDA without a GPU": "docs/emulated-device.md"}, {"The block language": "docs/block-language.md"},
                    {"rooftile's words and NVIDIA's": "docs/words.md"}]},
        {"Performance": [{"Figures and known gaps": "docs/performance.md"}, *report]},
        {"Contributing": [{"To take part": "CONTRIBUTING.md"}, {"Changes": "CHANGELOG.md"}]},
    ]
    config.mdx_configs["toc"]["slugify"] = anchor
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [
        {"name": "math", "class": "equation", "format": equation}]
    return config


def anchor(heading, separator):
    """GitHub's anchor of a heading: letters, digits, - and _, in lower case; each space a hyphen."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def rewritten_links(page, line):
    """The line with links to sources led to their pages."""
    def lead(match):
        opening, target = match.groups()
        path = repository_path(page, target)
        if path is None:
            return match[0]
        mark = target.partition("#")[2]
        uri = page_of(path)
        if uri.startswith("source/"):
            mark = re.sub(r"^L(\d+)$", r"__codelineno-0-\1", mark)
        way = posixpath.relpath(uri, posixpath.dirname(page) or ".")
        return opening + way + ("#" + mark if mark else "")

    parts = re.split(r"(`[^`]*`)", line)  # not in inline code
    return "".join(part if part.startswith("`") else LINK.sub(lead, part) for part in parts)


def python_markdown(lines):
    """CommonMark as Python-Markdown reads it: what belongs to a list's item stands 4 columns in for each level, a list has an
    empty line before it, and a hidden part's text is Markdown, too."""
    out, items = [], []  # items: the column at which each open list item's text begins
    blank = True
    for line, code in fenced(lines):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if not text:
            out.append("")
            blank = True
            continue
        item = None if code else re.match(r"([-*+]|\d+[.)]) +", text)
        if blank or item or code:
            while items and indent < items[-1]:
                items.pop()
        elif items and indent < items[-1]:
            indent = items[-1]  # a paragraph's next line, at any column
        column = items[-1] if items else 0
        if item:
            if not blank and not items and not re.match(r" *([-*+]|\d+[.)]) ", out[-1]):
                out.append("")
            out.append(" " * (4 * len(items) + max(0, indent - column)) + text)
            items.append(indent + len(item[0]))
        else:
            text = " " * max(0, indent - column) + text
            out.append(" " * 4 * len(items) + (text if code else text.replace("<details>", '<details markdown="1">')))
        blank = False
    return out


def on_page_markdown(markdown, page, config, files):
    path = page.file.src_uri
    if path.startswith("source/"):
        return markdown
    lines = []
    for line, code in fenced(markdown.split("\n")):
        if not code and re.fullmatch(r"\s*<!--.*-->\s*", line):
            line = ""  # marks of the tools
        lines.append(line if code else rewritten_links(path, line))
    return "\n".join(python_markdown(lines))
