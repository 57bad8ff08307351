#!/usr/bin/env bash
# ptx.h, hopper.h and shared.h compile for GPUs, too, old and new ones; without nvcc: skipped (77).
#   nvcc.sh SOURCE_FOLDER
set -uo pipefail

source=$1
nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if [ -z "$nvcc" ]; then
  echo "nvcc: skipped, there is none (not in PATH, not in ${CUDA_HOME:-/usr/local/cuda}/bin)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for unit in ptx hopper_ptx; do
  for architecture in 80 90a; do
    "$nvcc" -std=c++20 -gencode "arch=compute_$architecture,code=sm_$architecture" -fmad=false -Werror all-warnings \
      -I"$source" -c -o "$folder/ptx.o" "$source/tests/emulated/$unit.cu" || exit 1
  done
done
echo "nvcc: ptx.cu and hopper_ptx.cu compile for sm_80 and sm_90a"
