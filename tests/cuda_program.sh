#!/usr/bin/env bash
# The whole programs of lessons 5 and 6: nvcc builds each without a warning; where a GPU is it runs and is right, elsewhere
# it says what is missing. Without nvcc: skipped (77).
#   cuda_program.sh SOURCE_FOLDER
set -uo pipefail

source=$1
nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if [ -z "$nvcc" ]; then
  echo "cuda_program: skipped, there is no nvcc (not in PATH, not in ${CUDA_HOME:-/usr/local/cuda}/bin)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# program NAME WITHOUT_A_GPU WITH_ONE…: patterns of what it says.
program() {
  local name=$1 without=$2 said code pattern
  "$nvcc" -std=c++17 -O2 -Werror all-warnings -Xcompiler=-Wall,-Wextra -o "$folder/$name" "$source/examples/$name.cu" || exit 1
  said=$("$folder/$name" 2>&1)
  code=$?
  echo "$said"
  if nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ]; then
    for pattern in "${@:3}"; do
      if [ "$code" -ne 0 ] || ! grep -qE "$pattern" <<<"$said"; then
        echo "$name: exit code $code, must be 0 with \"$pattern\""
        failed=1
      fi
    done
  elif [ "$code" -ne 1 ] || ! grep -qE "$without" <<<"$said"; then
    echo "$name: without a GPU its exit code is $code, must be 1 with \"$without\""
    failed=1
  fi
}

program cuda_program '^cuda_program: line [0-9]+: cudaGetDevice' 'elements are right' 'GB/s'
program device_query '^device_query: (there is no driver|line [0-9]+: cuda)' '^device 0: .*, compute capability [0-9]+\.[0-9]' \
  '^  threads at once +[1-9]' '^  rated bandwidth +[1-9]' '^  axpy, 256 threads +[1-9][0-9]* blocks'
exit $failed
