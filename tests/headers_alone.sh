#!/usr/bin/env bash
# Each public header compiles alone, without a warning, and brings in no intrinsics, CUDA, fmt, JSON or image library.
#   headers_alone.sh COMPILER INCLUDE_FOLDER… -- HEADER…    (headers as one includes them: rooftile/core/view.h)
set -uo pipefail

compiler=$1
shift
flags=(-std=c++20 -x c++ -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  flags+=("-I$1")
  shift
done
shift
forbidden='/(immintrin|x86intrin|emmintrin|xmmintrin|arm_neon|cuda[a-z_]*|png|jpeglib|Python)\.h$|/(fmt|nlohmann|gtest|CLI)/'

bad=0
complain() {
  echo "$1"
  bad=$((bad + 1))
}
if [ $# -eq 0 ]; then complain "no headers were given"; fi
for header in "$@"; do
  # Twice, so that a header without a guard fails too.
  source="#include \"$header\"
#include \"$header\""
  if ! output=$("$compiler" "${flags[@]}" -fsyntax-only - <<<"$source" 2>&1); then
    complain "$header does not compile alone:
$output"
  elif ! files=$("$compiler" "${flags[@]}" -M - <<<"$source"); then
    complain "$header: the compiler could not list what it includes"
  elif found=$(tr -d '\134' <<<"$files" | tr -s ' ' '\n' | grep -E "$forbidden"); then
    complain "$header brings in what no public header may:
$found"
  fi
done
echo "headers_alone: $# headers, $bad problems"
[ "$bad" -eq 0 ]
