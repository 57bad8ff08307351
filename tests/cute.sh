#!/usr/bin/env bash
# Lesson 14's programs, where scripts/install_baselines.sh --cute put CuTe's headers; elsewhere skipped (77). Without a GPU:
# the layouts, the exercise's judge, and the copies on the CPU, under sanitizers. With nvcc: the same copies as kernels, which
# run where a GPU is.
#   cute.sh CXX SOURCE_FOLDER
set -uo pipefail

cxx=$1
cd "$2" || exit 1
if ! [ -e build/cute/flags ]; then
  echo "cute: skipped, there are no headers of CuTe in build/cute (scripts/install_baselines.sh --cute)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect WHAT EXIT_CODE TEXT COMMAND…
expect() {
  local said code
  said=$("${@:4}" 2>&1)
  code=$?
  if [ "$code" -ne "$2" ] || ! grep -qE "$3" <<<"$said"; then
    printf 'cute: %s: exit code %s, must be %s with "%s"; it says:\n%s\n' "$1" "$code" "$2" "$3" "$said"
    failed=1
  fi
}
# build NAME SOURCE [OPTION…]
build() {
  "$cxx" @build/cute/flags -Wall -Wextra "${@:3}" -o "$folder/$1" -x c++ "$2" || failed=1
}

build layouts examples/cute/layouts.cpp
expect "a composition" 0 '^the same, values apart +\(_4,_2\):\(_3,_12\)$' "$folder/layouts" compose
expect "no name" 2 '^layouts: give one name' "$folder/layouts"
build start examples/cute/exercise/judge.cpp -include examples/cute/exercise/start.h
build wrong examples/cute/exercise/judge.cpp -include examples/cute/exercise/wrong.h
build solution examples/cute/exercise/judge.cpp -include examples/cute/exercise/solution.h
for layout in part_of_a_matrix transposed image threads_and_values windows; do
  expect "the exercise's start" 1 "^$layout +coordinate .* gives 0, must be [1-9]" "$folder/start"
  expect "layouts of other shapes" 1 "^$layout +has the shape .*, must have " "$folder/wrong"
  expect "the exercise's solution" 0 "^$layout +right: " "$folder/solution"
done

build copy examples/cute/copy.cu -O1 -fsanitize=address
expect "copies on the CPU" 0 '^1512 matrices of 2-byte elements are right$' "$folder/copy"
# A fault that their check must see.
mkdir "$folder/fault" && cp examples/cute/copy.* "$folder/fault"
sed -i 's/inside(i) = elem_less(where(i), shape)/inside(i) = true/' "$folder/fault/copy.h"
build faulty "$folder/fault/copy.cu" -O1 -Wno-unused
expect "without predicates" 1 '^copy: vector of .* element [0-9]+ of y.s array is ' "$folder/faulty"

nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if [ -z "$nvcc" ]; then
  echo "cute: there is no nvcc; the kernels are not built"
  exit $failed
fi
"$nvcc" -std=c++17 -O3 -isystem build/cute/include -Werror all-warnings -Xcompiler=-Wall,-Wextra -o "$folder/kernels" \
  examples/cute/copy.cu || exit 1
if nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ]; then
  expect "copies on the GPU" 0 '^1512 matrices of 2-byte elements are right$' "$folder/kernels"
  expect "their times" 0 'transposed +[0-9.]+ us +[0-9]+ GB/s' "$folder/kernels"
else
  expect "copies without a GPU" 1 '^copy: line [0-9]+: cudaGetDeviceProperties' "$folder/kernels"
fi
exit $failed
