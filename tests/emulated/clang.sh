#!/usr/bin/env bash
# The emulated device's tests once more, kernels and all compiled by clang++; without one: skipped (77).
#   clang.sh SOURCE_FOLDER BUILD_FOLDER
set -uo pipefail

source=$1
build=$2
if ! command -v clang++ >/dev/null; then
  echo "clang: skipped, there is no clang++"
  exit 77
fi
CXX=clang++ cmake -S "$source/tests/emulated" -B "$build" >/dev/null || exit 1
cmake --build "$build" --parallel "$(nproc)" || exit 1
ctest --test-dir "$build" --output-on-failure --label-exclude once --parallel "$(nproc)"
