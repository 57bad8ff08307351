#!/usr/bin/env bash
# What lies outside the emulated device's subset of CUDA, or what a GPU's team cannot do, is refused with a sentence:
# tests/must_not_compile.sh for their headers, with g++ and, where there is one, clang++.
#   must_not_compile.sh COMPILER SOURCE_FOLDER
set -uo pipefail

compiler=$1
source=$2
wrapper=$(mktemp)
trap 'rm -f "$wrapper"' EXIT
chmod +x "$wrapper"
bad=0
for each in "$compiler" clang++; do
  command -v "$each" >/dev/null || continue
  printf '#!/bin/sh\nexec %s -DROOFTILE_EMULATED=1 "$@"\n' "$each" >"$wrapper"
  "$source/tests/must_not_compile.sh" "$wrapper" "$source/tests/emulated/must_not_compile" "$source" \
    "$source/rooftile/backend/emulated/include" || bad=1
done
exit $bad
