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
    rooftile/c_functions.h) echo 5000 ;;  # generated, a declaration per function
    rooftile/ops/*/oracle.h | rooftile/ops/*/cases.h | rooftile/ops/*/*.*.h) echo 520 ;;
    rooftile/ops/*/*.h) echo 100 ;;
    *) echo 520 ;;
  esac
}
while read -r file; do
  complain "$file holds a merge's markers"
done < <(git grep -lE '^(<{7}|>{7}) ')
while read -r file; do
  lines=$(wc -l <"$file")
  limit=$(limit_of "$file")
  [ "$lines" -le "$limit" ] || complain "$file has $lines lines; at most $limit"
done < <(listed '*.h' '*.cpp' '*.cu' '*.cuh' '*.sh' '*.cmake' 'CMakeLists.txt')

# A fault that no longer fits its source would be noticed by make mutants alone, hours later.
for patch in tests/mutants/*.patch; do
  sed -n 2p "$patch" | grep -q '^build: ' || complain "$patch: its second line is not \"build: TARGET…\""
  why=$(git apply --check "$patch" 2>&1) || complain "$patch does not apply, plant its fault anew: ${why%%$'\n'*}"
done

# What an op's folder says, without lesson, ladder, exercise and what else computes it: an elementwise function 40 lines, a
# function of rows with its backward 350, and any other folder 350. An op beyond that says in its README.md or INTERNALS.md
#   <!-- lines: 947, because … -->
# and stays within the figure.
lines_of_op() {  # the files that count
  listed "$1/*" | grep -v -e "/ladder/" -e '/exercise/' -e '\.md$' -e '\.py$'
}
allowed_lines() {  # of the folder's public functions
  local functions
  functions=$(grep -hoE '^Status [a-z0-9_]+\(' "$1/${1##*/}.h" | sed -E 's/^Status |\(//g' | grep -v '_workspace$')
  if grep -qs ROOFTILE_LANES "$1/${1##*/}.kernels.cpp" && [ ! -e "$1/${1##*/}.cu" ]; then
    echo $((40 * $(wc -l <<<"$functions")))
  elif grep -qs 'row_op<' "$1/${1##*/}.cpp"; then
    echo $((350 * $(grep -cv '_backward$' <<<"$functions")))
  else
    echo 350
  fi
}
while read -r header; do
  op=$(dirname "$header")
  [ "$header" = "$op/${op##*/}.h" ] || continue
  lines=$(lines_of_op "$op" | xargs -d '\n' cat | wc -l)
  allowed=$(allowed_lines "$op")
  reason=$(cat "$op"/README.md "$op"/INTERNALS.md 2>/dev/null | sed -nE 's/^<!-- lines: ([0-9]+), because .{20,} -->$/\1/p' | head -1)
  if [ "$lines" -gt "$allowed" ] && [ -z "$reason" ]; then
    complain "$op has $lines lines; at most $allowed, or a line <!-- lines: $lines, because … --> in its README or INTERNALS"
  elif [ "$lines" -gt "$allowed" ] && [ "$lines" -gt "$reason" ]; then
    complain "$op has $lines lines; its README or INTERNALS gives a reason for $reason"
  elif [ "$lines" -le "$allowed" ] && [ -n "$reason" ]; then
    complain "$op has $lines lines, of $allowed that it may: the line <!-- lines: $reason, … --> can go"
  fi
done < <(listed 'rooftile/ops/*/*.h')

while read -r file; do
  grep -q '^#pragma once' "$file" || complain "$file has no #pragma once"
done < <(listed '*.h')

# The library never prints, aborts or throws; code behind // is not code.
while read -r found; do
  complain "the library must not print, abort or throw: $found"
done < <(listed 'rooftile/core/*.cpp' 'rooftile/core/*.h' 'rooftile/runtime/*.cpp' 'rooftile/runtime/*.h' 'rooftile/backend/*.cpp' 'rooftile/backend/*.h' \
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

# Rooms: each includes itself and what stands below it, never what stands above.
while read -r room below; do
  while read -r found; do
    complain "$room/ may include $room|$below, nothing else of rooftile/: $found"
  done < <(git ls-files "rooftile/$room/*.h" "rooftile/$room/*.cpp" |
    xargs -r grep -nE '^#include "rooftile/' | grep -vE "\"rooftile/($room|$below)/[^/]*\"|\"rooftile/c(_functions)?\.h\"")
done <<'ROOMS'
core core
runtime core|backend/cpu
backend/cpu core
harness/check core|runtime|harness|backend/cpu
harness/bench core|runtime|harness|harness/check|backend/cpu|backend/cuda
harness/report core|harness|harness/bench
harness/drawing harness
harness/course core|runtime|harness|harness/check|harness/bench|exercise|backend/emulated
ROOMS

while read -r found; do
  complain "include from the repository's root, not relative: $found"
done < <(listed '*.h' '*.cpp' '*.cu' | xargs -r grep -nE '#include "\.\.?/')

while read -r found; do
  complain "trailing white space or a carriage return: $found"
done < <(listed '*.h' '*.cpp' '*.cu' '*.md' '*.sh' '*.cmake' 'CMakeLists.txt' Makefile .ci/run |
  xargs -r grep -nE '[[:space:]]$' | cut -c1-120)

# The container's files.
scripts/check_container.sh >&2 || complain "Dockerfile or devcontainer have the problems above"

# How lesson pages read.
scripts/lint_pages.sh >&2 || complain "lesson pages have the problems above"

if [ "$problems" -ne 0 ]; then
  echo "lint: $problems problems" >&2
  exit 1
fi
echo "lint: no problems"
