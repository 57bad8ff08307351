#!/usr/bin/env bash
# Checks the scripts with shellcheck, and the rules of this repository that no formatter knows.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

problems=0
complain() {
  echo "lint: $1" >&2
  problems=$((problems + 1))
}
listed() {
  git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
    [ -f "$file" ] && echo "$file"
  done
}

if ! command -v shellcheck >/dev/null; then
  complain "shellcheck is not installed (scripts/install_packages.sh --lint installs it)"
else
  mapfile -t scripts < <(listed '*.sh' .ci/run)
  shellcheck --severity=warning "${scripts[@]}" || complain "shellcheck found the problems above"
fi

# Long files are hard to read: rungs 200 lines, public headers 100, others about 500.
limit_of() {
  case $1 in
    rooftile/ops/*/ladder/*) echo 200 ;;
    rooftile/core/convert.h | rooftile/core/dtype.h | rooftile/core/element.h) echo 100 ;;  # public ones
    rooftile/core/queue.h | rooftile/core/status.h | rooftile/core/tensor_view.h) echo 100 ;;
    rooftile/core/view.h | rooftile/core/view_of.h | rooftile/core/workspace.h) echo 100 ;;
    rooftile/ops/*/oracle.h | rooftile/ops/*/cases.h | rooftile/ops/*/*.*.h) echo 520 ;;
    rooftile/ops/*/*.h) echo 100 ;;
    *) echo 520 ;;
  esac
}
while read -r file; do
  lines=$(wc -l <"$file")
  limit=$(limit_of "$file")
  [ "$lines" -le "$limit" ] || complain "$file has $lines lines; at most $limit"
done < <(listed '*.h' '*.cpp' '*.cu' '*.cuh' '*.sh' '*.cmake' 'CMakeLists.txt')

while read -r file; do
  grep -q '^#pragma once' "$file" || complain "$file has no #pragma once"
done < <(listed '*.h')

# The library never prints, aborts or throws; code behind // is not code.
while read -r found; do
  complain "the library must not print, abort or throw: $found"
done < <(listed 'rooftile/core/*.cpp' 'rooftile/core/*.h' 'rooftile/backend/*.cpp' 'rooftile/backend/*.h' \
  'rooftile/tile/*.h' 'rooftile/ops/*.h' 'rooftile/ops/*.cpp' |
  grep -v -e /ladder/ -e /oracle.h -e /cases.h |
  xargs -r grep -nE '(^|[^a-zA-Z_.:])(std::)?(printf|fprintf|puts|perror|abort|exit|terminate) ?\(|std::c(out|err)|[^a-zA-Z_]throw[ ;]' |
  grep -vE '^[^:]+:[0-9]+: *(//|\*)')

# Intrinsics live behind the block language; rungs may show them, since that is what they teach, and the harness needs
# them to measure the machine.
while read -r found; do
  complain "intrinsics belong to rooftile/tile/ and rooftile/backend/: $found"
done < <(listed '*.h' '*.cpp' | grep -v -e '^rooftile/tile/' -e '^rooftile/backend/' -e '^rooftile/harness/' -e /ladder/ |
  xargs -r grep -nE '#include <(immintrin|x86intrin|arm_neon)\.h>')

while read -r found; do
  complain "include from the repository's root, not relative: $found"
done < <(listed '*.h' '*.cpp' '*.cu' | xargs -r grep -nE '#include "\.\.?/')

while read -r found; do
  complain "trailing white space or a carriage return: $found"
done < <(listed '*.h' '*.cpp' '*.cu' '*.md' '*.sh' '*.cmake' 'CMakeLists.txt' Makefile .ci/run |
  xargs -r grep -nE '[[:space:]]$' | cut -c1-120)

# How lesson pages read; pages that were rewritten must have none of what it counts.
scripts/lint_pages.sh >&2 || complain "rewritten lesson pages have the problems above"

if [ "$problems" -ne 0 ]; then
  echo "lint: $problems problems" >&2
  exit 1
fi
echo "lint: no problems"
