#!/usr/bin/env bash
# Runs checks and tests under valgrind's memcheck: a result that depends on memory nobody has written, which no
# sanitizer of GCC sees. Valgrind knows no AVX-512 and takes 30 to 50 times as long, so: few cases of every op, its
# kernels and rungs, on the baseline and AVX2; random layouts; the tests that need neither threads nor fibers.
#   scripts/valgrind.sh [BUILD_FOLDER]    build/release; 77: there is no valgrind
set -uo pipefail
cd "$(dirname "$0")/.." || exit

build=${1:-build/release}
if ! command -v valgrind >/dev/null; then
  echo "valgrind: skipped, it is not installed (scripts/install_packages.sh --all installs it)"
  exit 77
fi
export LC_ALL=C
logs=$build/valgrind
mkdir -p "$logs"
failures=0

# memcheck NAME PROGRAM ARGUMENT…; 99: valgrind has something to say.
memcheck() {
  local name=$1 begin=$SECONDS code=0
  shift
  valgrind --quiet --error-exitcode=99 --leak-check=no --num-callers=20 --log-file="$logs/$name.valgrind" \
    "$build/bin/$1" "${@:2}" >"$logs/$name" 2>&1 || code=$?
  # check calls kernels in children, whose exit code is not its own: what they have read is in the log.
  if [ "$code" -eq 0 ] && [ ! -s "$logs/$name.valgrind" ]; then
    echo "valgrind: $name: nothing found ($((SECONDS - begin)) s)"
  else
    failures=$((failures + 1))
    echo "valgrind: $name ends with $code:"
    head -n 30 "$logs/$name.valgrind"
    tail -n 5 "$logs/$name"
  fi
}

isas=baseline
if valgrind --quiet "$build/bin/rooftile" list >/dev/null 2>&1 && grep -qw avx2 /proc/cpuinfo; then isas=baseline,avx2; fi
memcheck quick rooftile check --quick --isa "$isas"
memcheck random rooftile check --random-only --random 400 --seed 1 --isa "$isas"
for test in check_arguments_test convert_test rows_test signature_test view_test; do memcheck "$test" "$test"; done
[ "$failures" -eq 0 ]
