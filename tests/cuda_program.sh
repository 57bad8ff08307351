#!/usr/bin/env bash
# Lesson 6's program: nvcc builds it without a warning; where a GPU is it runs and is right, elsewhere it says
# which call failed. Without nvcc: skipped (77).
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
"$nvcc" -std=c++17 -O2 -Werror all-warnings -Xcompiler=-Wall,-Wextra -o "$folder/cuda_program" \
  "$source/examples/cuda_program.cu" || exit 1
said=$("$folder/cuda_program" 2>&1)
code=$?
if nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ]; then
  echo "$said"
  [ "$code" -eq 0 ] && grep -q "elements are right" <<<"$said" && grep -q "GB/s" <<<"$said"
  exit
fi
# The program's first call is the one that fails, and it says so.
if [ "$code" -ne 1 ] || ! grep -qE '^cuda_program: line [0-9]+: cudaGetDevice' <<<"$said"; then
  echo "cuda_program: without a GPU it should exit with 1 and name the call; it exited with $code and said: $said"
  exit 1
fi
echo "cuda_program: built, and without a GPU it says: $said"
