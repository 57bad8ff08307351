"""The built site is sound: every link inside leads to a page and a place on it, each page shows what GitHub shows, and headless
Chromium opens each without a console message, a request to elsewhere or sideways scrolling, at 1280 and 390 px, light and dark.
    tests/site_test.py SITE [SCREENSHOTS]        exit: 0 sound, 1 not, 77 no Chromium (the rest was sound)
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
COUNTED = ("pre", "li", "table", "tr", "img", "details", "h2", "h3", "blockquote", "ol", "ul", "strong", "em", "math", "command")
LOOKED_AT = ("index.html", "docs/course/index.html", "docs/course/10_vector_addition.html", "rooftile/ops/softmax/index.html",
             "docs/reference.html", "docs/performance.html", "docs/emulated-device.html")


class Page(HTMLParser):
    """A page's ids and links, and how often each kind of element stands in its article."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads, self.count, self.depth, self.shown = set(), [], [], Counter(), 0, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("img", "script", "iframe") and "src" in found or tag == "link" and found.get("rel") != "canonical":
            self.loads.append(found.get("src") or found.get("href"))
        if tag == "article":
            self.depth += 1
        if self.depth and tag in COUNTED:
            self.count[tag] += 1
        if self.depth and "language-sh" in (found.get("class") or "").split():
            self.count["command"] += 1  # by this class a command looks unlike what it prints

    def handle_endtag(self, tag):
        if tag == "article":
            self.depth -= 1

    handle_startendtag = handle_starttag


def check_links(site, pages):
    for name, page in pages.items():
        for target in page.links + page.loads:
            parts = urlsplit(target)
            if parts.scheme or target.startswith("//"):
                if target in page.loads and parts.scheme != "data":
                    yield f"{name} loads {target}"
                continue
            path = unquote(parts.path)
            file = (site / name).parent / path if path else site / name
            file = Path(os.path.normpath(file))
            if file.is_dir():
                file /= "index.html"
            if not file.is_file():
                yield f"{name} links to {target}, which is not there"
            elif parts.fragment and file.suffix == ".html":
                other = pages.get(file.relative_to(site).as_posix())
                if other and unquote(parts.fragment) not in other.ids:
                    yield f"{name} links to {target}, which has no such place"


def check_looks(pages):
    """Each page's elements are those of its Markdown as GitHub reads it."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    for name, page in pages.items():
        source = ROOT / re.sub(r"\.html$", ".md", name)
        if source.name == "index.md":
            source = source.with_name("README.md")
        if not source.is_file():
            continue
        html = reader.render(source.read_text())
        wanted = Page("<article>" + html + "</article>").count
        wanted["math"] = html.count('<code class="language-math">')  # GitHub sets these, not as code
        wanted["pre"] -= wanted["math"]
        for tag in COUNTED:
            if page.count[tag] != wanted[tag]:
                yield f"{name} shows {page.count[tag]} <{tag}>, GitHub {wanted[tag]}"


# A frame's pages see the scheme of what is around them: it must be able to be dark.
HEAD = '<!doctype html><html><meta name="color-scheme" content="light dark"><body style="margin:0">'
FRAMES = HEAD + """<script>
const pages = %s, out = document.documentElement;
(async () => {
  for (const page of pages) {
    const frame = document.createElement("iframe");
    frame.style = "border:0;width:%dpx;height:900px";
    frame.src = page;
    document.body.append(frame);
    await new Promise((loaded) => frame.onload = loaded);
    await new Promise((later) => setTimeout(later, 50));
    const root = frame.contentDocument.documentElement, scheme = frame.contentDocument.body.dataset.mdColorScheme;
    for (const details of frame.contentDocument.querySelectorAll("details")) details.open = true;
    const title = frame.contentDocument.querySelector("h1") !== null, broken = [...frame.contentDocument.images].filter(
      (image) => image.complete && image.naturalWidth === 0).map((image) => image.src);
    const line = document.createElement("p");
    line.textContent = "PAGE " + JSON.stringify({page, overflow: root.scrollWidth - root.clientWidth, title, broken, scheme});
    frame.remove();
    document.body.append(line);
  }
  out.dataset.done = pages.length;
})();
</script></body></html>"""

SEARCH = HEAD + """<iframe src="%s" style="border:0;width:1280px;height:900px"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = async () => {
  const page = frame.contentDocument, box = page.querySelector("input.md-search__input");
  page.querySelector("#__search").click();
  box.focus();
  box.value = "coalescing";
  box.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true, key: "g"}));
  box.dispatchEvent(new InputEvent("input", {bubbles: true}));
  for (let i = 0; i < 100 && !page.querySelector(".md-search-result__link"); ++i) await new Promise((later) => setTimeout(later, 100));
  document.documentElement.dataset.found = page.querySelectorAll(".md-search-result__link").length;
};
</script></body></html>"""


class Browser:
    def __init__(self, program, folder):
        self.program, self.folder, self.problems = program, folder, []

    def open(self, url, scheme, *words):
        """The page after its scripts; what the console and the network saw become problems."""
        log = self.folder / "net.json"
        log.unlink(missing_ok=True)
        done = subprocess.run(
            [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             f"--user-data-dir={self.folder}/profile{scheme}", "--allow-file-access-from-files", "--virtual-time-budget=600000",
             f"--blink-settings=preferredColorScheme={scheme}", "--enable-logging=stderr", f"--log-net-log={log}", *words, url],
            capture_output=True, text=True, errors="replace", timeout=300)
        for line in done.stderr.splitlines():
            if "CONSOLE" in line:
                self.problems.append("the console says: " + line.split("CONSOLE", 1)[1][:200])
        # Chromium's own requests (updates, time) have no page as initiator.
        for line in log.read_text(errors="replace").splitlines() if log.is_file() else ():
            if '"initiator"' in line and '"initiator":"not an origin"' not in line:
                for url in re.findall(r'"url":"([^"]*)"', line):
                    if not re.match(r"file:|data:|blob:", url):
                        self.problems.append("the page asked the network for " + url)
        return done.stdout


def check_in_chromium(site, names, shots):
    program = shutil.which(os.environ.get("CHROMIUM", "chromium")) or shutil.which("google-chrome")
    if not program:
        return None
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, Path(folder))
        frame = Path(folder) / "frame.html"
        urls = [(site / name).as_uri() for name in names]
        for width, scheme, color in ((1280, 1, "light"), (390, 0, "dark")):
            frame.write_text(FRAMES % (json.dumps(urls), width))
            text = browser.open(frame.as_uri(), scheme, "--window-size=1280,900", "--dump-dom")
            found = [json.loads(line.replace("&amp;", "&")) for line in re.findall(r"<p>PAGE (.*?)</p>", text)]
            if len(found) != len(urls):
                browser.problems.append(f"{width} px: {len(found)} of {len(urls)} pages were opened")
            for page in found:
                what = f"{page['page'].removeprefix(site.as_uri() + '/')}, {width} px"
                if page["overflow"] > 0:
                    browser.problems.append(f"{what}: {page['overflow']} px wider than its window")
                if not page["page"].endswith("report_sample.html"):
                    if not page["title"]:
                        browser.problems.append(f"{what}: has no heading")
                    if page.get("scheme") != {"light": "default", "dark": "slate"}[color]:
                        browser.problems.append(f"{what}: is {page.get('scheme')} where the system is {color}")
                for image in page["broken"]:
                    browser.problems.append(f"{what}: picture {image} is not shown")
            if shots:
                screenshots(browser, site, shots, width)
        frame.write_text(SEARCH % urls[names.index("index.html")])
        text = browser.open(frame.as_uri(), 1, "--window-size=1280,900", "--dump-dom")
        if int((re.search(r'data-found="(\d+)"', text) or [0, 0])[1]) < 2:
            browser.problems.append("a search for 'coalescing' finds nothing")
        return sorted(set(browser.problems))


def screenshots(browser, site, shots, width):
    shots.mkdir(parents=True, exist_ok=True)
    for name in LOOKED_AT:
        for scheme, color in ((1, "light"), (0, "dark")):
            frame = browser.folder / "shot.html"  # a frame: Chromium's window is never narrower than 500 px
            frame.write_text(f'{HEAD}<iframe src="{(site / name).as_uri()}" '
                             f'style="border:0;width:{width}px;height:1800px"></iframe>')
            file = shots / f"{name.removesuffix('.html').replace('/', '_')}_{width}_{color}.png"
            browser.open(frame.as_uri(), scheme, f"--window-size={max(width, 500)},1800", f"--screenshot={file}")


def main():
    site = Path(sys.argv[1]).resolve()
    shots = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    pages = {path.relative_to(site).as_posix(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    problems = []
    if len(pages) < 30:
        problems.append(f"{site} has {len(pages)} pages, at least 30 are expected")
    problems += check_links(site, {name: page for name, page in pages.items() if name not in ("404.html", "report_sample.html")})
    problems += check_looks(pages)
    seen = check_in_chromium(site, [name for name in pages if name != "404.html"], shots)
    problems += seen or []
    for problem in problems:
        print(f"site: {problem}")
    print(f"site: {len(pages)} pages, {len(problems)} problems" + ("" if seen is not None else "; no Chromium, so none was opened"))
    sys.exit(1 if problems else 0 if seen is not None else 77)


main()
