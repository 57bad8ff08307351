#!/bin/sh
# Opens a report in headless Chromium and fails unless it is a sound page: every chart drawn (each choice of each
# chart tried), in light and dark, at desktop and phone width; one point under the pointer; a hint where a table has
# columns out of sight; a claim and its chart before the first table; no console message, no network request, no sideways
# scrolling of the page. With a folder as second argument it leaves screenshots of the whole page there.
#   tests/report_page.sh report.html [SCREENSHOTS]
# CHARTS=N expects exactly N charts (default: at least one). Exit: 0 sound, 1 not, 2 usage, 77 no Chromium.
set -u

[ $# -ge 1 ] && [ $# -le 2 ] && [ -r "$1" ] || { echo "usage: $0 report.html [SCREENSHOTS]" >&2; exit 2; }
page=$(readlink -f "$1")
shots=${2:-}
chromium=$(command -v "${CHROMIUM:-chromium}" || command -v chromium-browser || command -v google-chrome) || {
  echo "report_page: no chromium found; install it with: apt-get install chromium" >&2
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "report_page: FAILED: $*" >&2
  failures=$((failures + 1))
}

# What a shell's argument may hold and a URL may not.
url() { printf 'file://%s' "$1" | sed 's/%/%25/g; s/ /%20/g; s/#/%23/g; s/?/%3F/g'; }

# browse SCHEME ARGUMENTS...: 0 is dark, 1 is light, as Blink counts them.
browse() {
  scheme=$1
  shift
  timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
    --user-data-dir="$work/profile" --allow-file-access-from-files --virtual-time-budget=20000 \
    --blink-settings=preferredColorScheme="$scheme" --enable-logging=stderr --log-net-log="$work/net.json" "$@"
}

attribute() { sed -n "s/.*<html[^>]* data-$1=\"\([^\"]*\)\".*/\1/p" "$2" | head -n 1; }

# judge NAME: what the page said of itself, the console and the network.
judge() {
  charts=$(attribute charts "$work/dom.html")
  canvases=$(attribute canvases "$work/dom.html")
  overflow=$(attribute overflow "$work/dom.html")
  if [ -z "$charts" ] || [ -z "$canvases" ] || [ -z "$overflow" ]; then
    fail "$1: the page's script did not run to its end"
    tail -n 3 "$work/log" >&2
    return
  fi
  [ "$charts" = "$canvases" ] || fail "$1: $charts of $canvases charts drawn"
  [ "$canvases" -ge 1 ] || [ "${CHARTS:-1}" = 0 ] || fail "$1: the page holds no chart"
  [ "$canvases" = "${CHARTS:-$canvases}" ] || fail "$1: the page holds $canvases charts, expected $CHARTS"
  [ "$overflow" -le 0 ] || fail "$1: the page is $overflow px wider than its window"
  if grep -a 'CONSOLE' "$work/log" >"$work/console"; then fail "$1: the console says: $(head -n 3 "$work/console")"; fi
  # Chromium's own requests (updates, time) have no page as initiator.
  if [ ! -s "$work/net.json" ]; then
    fail "$1: Chromium wrote no network log"
  elif grep -a '"initiator"' "$work/net.json" | grep -av '"initiator":"not an origin"' | grep -aoE '"url":"[^"]*"' |
    grep -avE '"url":"(file|data):' >"$work/requests"; then
    fail "$1: the page asked the network for $(head -n 3 "$work/requests" | tr '\n' ' ')"
  fi
}

# judge_frame NAME: what the frame around the page found out.
judge_frame() {
  points=$(attribute points "$work/dom.html")
  wrong=$(attribute wrong "$work/dom.html")
  hints=$(attribute hints "$work/dom.html")
  [ "${wrong:-1}" = 0 ] || fail "$1: the pointer finds another point, or several, at ${wrong:-all} of ${points:-?} points"
  [ "${hints:-wrong}" != wrong ] || fail "$1: a table's hint at columns out of sight is missing, or stands where there are none"
}

# A frame as wide as a phone, because Chromium's window is never narrower than 500 px. It tries every choice, and
# hands on the least number of charts drawn and the widest overflow.
frame() {
  cat >"$work/frame.html" <<HTML
<!doctype html><html><meta name="color-scheme" content="light dark"><body style="margin:0"><iframe src="$(url "$page")" style="border:0;width:$1px;height:900px"></iframe>
<script>
const frame = document.querySelector("iframe"), out = document.documentElement.dataset;
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  let charts = Number(root.dataset.charts), choices = 0;
  const changed = (control) => {
    control.dispatchEvent(new Event("change"));
    charts = Math.min(charts, Number(root.dataset.charts));
    ++choices;
  };
  for (const select of page.querySelectorAll("select")) {
    for (const option of select.options) { select.value = option.value; changed(select); }
    select.selectedIndex = 0;
    changed(select);
  }
  for (const radio of page.querySelectorAll("input[type=radio]")) { radio.checked = true; changed(radio); }
  // At each point the pointer finds that one point, or one that lies there too; never several.
  let points = 0, wrong = 0;
  const Chart = frame.contentWindow.Chart;
  for (const canvas of page.querySelectorAll("#roofline, #speed")) {
    const chart = Chart.getChart(canvas), mode = chart && chart.options.interaction.mode;
    if (!chart) continue;  // not drawn, which is counted above
    chart.getSortedVisibleDatasetMetas().forEach((meta) => meta.data.forEach((element, index) => {
      if (chart.data.datasets[meta.index].data[index].title === undefined) return;
      ++points;
      const at = { x: element.x + 1, y: element.y + 1, native: true };
      const found = chart.getElementsAtEventForMode(at, mode, chart.options.interaction, false);
      const near = (one) => Math.hypot(one.element.x - at.x, one.element.y - at.y) <= Math.hypot(1, 1) + 1e-6;
      if (found.length !== 1 || !near(found[0])) ++wrong;
    }));
  }
  for (const details of page.querySelectorAll("details")) details.open = true;
  frame.contentWindow.dispatchEvent(new Event("resize"));
  // A table says that it has more columns exactly where some are out of sight.
  const hints = [...page.querySelectorAll(".scroll")].map((box) => {
    const hint = box.previousElementSibling, said = hint.offsetHeight > 0;
    return hint.className === "more" && said === (box.scrollWidth > box.clientWidth + 1) ? (said ? 1 : 0) : -1;
  });
  const overflow = root.scrollWidth - root.clientWidth;
  for (const details of page.querySelectorAll("details")) details.open = false;
  frame.style.height = root.scrollHeight + "px";
  Object.assign(out, { charts, canvases: root.dataset.canvases, overflow, choices, height: root.scrollHeight, points, wrong,
    hints: hints.includes(-1) ? "wrong" : hints.filter((said) => said).length });
};
</script></body></html>
HTML
}

for scheme in 1 0; do
  name=$([ "$scheme" = 1 ] && echo light || echo dark)
  rm -f "$work/net.json"
  browse "$scheme" --window-size=1200,900 --dump-dom "$(url "$page")" >"$work/dom.html" 2>"$work/log"
  judge "$name"
  for width in 1200 390; do
    frame "$width"
    rm -f "$work/net.json"
    browse "$scheme" --window-size=1200,900 --dump-dom "$(url "$work/frame.html")" >"$work/dom.html" 2>"$work/log"
    judge "$name, $width px"
    judge_frame "$name, $width px"
    [ -n "$shots" ] || continue
    height=$(attribute height "$work/dom.html")
    mkdir -p "$shots"
    browse "$scheme" --window-size="$([ "$width" -gt 500 ] && echo "$width" || echo 500),${height:-900}" \
      --screenshot="$shots/report_${name}_$width.png" "$(url "$work/frame.html")" 2>"$work/log" ||
      fail "$name, $width px: no screenshot could be written to $shots"
  done
done

# Without JavaScript the claim and its chart are there, before any table, and no canvas says more than the tables do.
sed 's/<script.*//' "$page" | tr -d '\n' >"$work/plain.txt"
if ! grep -aqE 'class="empty">Nothing was measured' "$page"; then
  grep -aqE 'class="claim">[^<]*%.*class="shares">.*<table' "$work/plain.txt" ||
    fail "the claim and its chart do not stand above the first table"
fi

[ "$failures" -eq 0 ] || { echo "report_page: $failures failed" >&2; exit 1; }
echo "report_page: $canvases charts drawn in light and dark, at 1200 and 390 px; console and network quiet"
