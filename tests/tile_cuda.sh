#!/usr/bin/env bash
# Every kernel is a GPU's, too: each rooftile/ops/*/*.tile.h compiles alone for sm_90a. Without nvcc: skipped (77).
#   tile_cuda.sh SOURCE_FOLDER
set -uo pipefail

source=$1
nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if [ -z "$nvcc" ]; then
  echo "tile_cuda: skipped, there is no nvcc (not in PATH, not in ${CUDA_HOME:-/usr/local/cuda}/bin)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags=(-std=c++20 --expt-relaxed-constexpr --extended-lambda -gencode "arch=compute_90a,code=sm_90a" -fmad=false
  -Werror all-warnings -I"$source" -c -o "$folder/out.o")

bad=0
count=0
compile() {  # compile FILE NAME
  count=$((count + 1))
  if ! output=$("$nvcc" "${flags[@]}" "$1" 2>&1); then
    echo "$2 does not compile for a GPU:"
    head -40 <<<"$output"
    bad=$((bad + 1))
  fi
}
for header in "$source"/rooftile/ops/*/*.tile.h; do
  name=${header#"$source"/}
  echo "#include \"$name\"" >"$folder/include.cu"
  compile "$folder/include.cu" "$name"
done
if [ "$count" -lt 5 ]; then
  echo "only $count files were found"
  bad=$((bad + 1))
fi
echo "tile_cuda: $count files, $bad problems ($("$nvcc" --version | grep -o 'release [0-9.]*'))"
[ "$bad" -eq 0 ]
