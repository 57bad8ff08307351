#!/usr/bin/env bash
# What make test, make test-sanitized and make test-all run: everything as released; the suite under AddressSanitizer and
# UBSan, and the thread tests under ThreadSanitizer; both, with what is too long for CI (all cases, planted faults,
# valgrind), the whole suite under ThreadSanitizer, and random cases by the hundred thousand under AddressSanitizer.
# Ends with ctest's summary and one line of totals.
#   scripts/test.sh [--sanitized | --all]
set -euo pipefail
cd "$(dirname "$0")/.."

released=yes sanitized='' all=''
case "${1:-}" in
  --sanitized) released='' sanitized=yes ;;
  --all) sanitized=yes all=yes ;;
  "") ;;
  *)
    echo "test.sh: unknown option $1; it takes --sanitized and --all" >&2
    exit 2
    ;;
esac

scripts/install_packages.sh --test ${all:+--all}
results=$PWD/build/test-results
rm -rf "$results"
mkdir -p "$results"
jobs=$(nproc 2>/dev/null || echo 2)

# Sums what ctest itself said at the end of each of its runs.
totals() {
  local tests failed skipped
  tests=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$results"/*.txt | awk '{ n += $1 } END { print n + 0 }')
  failed=$(sed -n 's/.*, \([0-9]*\) tests failed out of .*/\1/p' "$results"/*.txt | awk '{ n += $1 } END { print n + 0 }')
  skipped=$(cat "$results"/*.txt | grep -cE '\*\*\*(Skipped|Not Run \(Disabled\))' || true)
  echo "$((tests - failed - skipped)) passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
}

# run PRESET TARGET CTEST-ARGUMENT…: configure, build and test; stops at the first preset with a failure.
run() {
  local preset=$1 target=$2
  shift 2
  echo "== $preset"
  cmake --preset "$preset" -DROOFTILE_TESTS=ON -DROOFTILE_EMULATED=ON -DROOFTILE_EMULATED_F16=$f16 "${configure[@]}" >"$results/$preset.log" 2>&1 ||
    { cat "$results/$preset.log"; exit 1; }
  cmake --build --preset "$preset" --target "$target"
  if ! ctest --preset "$preset" -j "$jobs" "$@" | tee "$results/$preset.txt"; then
    totals
    exit 1
  fi
}

# Left to make test-all: the third instruction set, f16 on the emulated device, bits at every offset on all but one
# instruction set; under AddressSanitizer bench and report,
# and ops that this change (since ROOFTILE_BASE, or the commit before) does not concern.
isas="baseline;native" f16=OFF ops="" left_out='^(bench|report|plot|ncu|listing)'
if [ -n "$all" ]; then
  isas="baseline;avx2;avx512" f16=ON left_out=""
  export ROOFTILE_ALL_CASES=1  # ops_test compares bits everywhere
elif [ -n "$sanitized" ]; then
  # shellcheck disable=SC2086  # no base: no argument
  ops=$({ scripts/affected.sh --fixed && scripts/affected.sh ${ROOFTILE_BASE:-}; } | sort -u | paste -sd ';')
  echo "under AddressSanitizer: $ops"
fi

if [ -n "$released" ]; then
  configure=("-DROOFTILE_ISAS=$isas" -DROOFTILE_OPS= -DROOFTILE_PYTHON=ON)
  if [ -n "$all" ]; then run release all; else run release all -LE long; fi
fi
if [ -n "$sanitized" ]; then
  configure=(-DROOFTILE_ISAS=native "-DROOFTILE_OPS=$ops" "-DROOFTILE_TESTS_LEFT_OUT=$left_out")
  run asan-ubsan all -LE 'once|long'
  if [ -n "$all" ]; then run tsan all -LE 'once|long'; else run tsan thread_tests -L threads; fi
fi
if [ -n "$all" ]; then
  scripts/random_check.sh --count 100000 || {
    totals
    exit 1
  }
fi
totals
