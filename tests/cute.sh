#!/usr/bin/env bash
# Lesson 14's and 45's programs, where scripts/install_baselines.sh --cute put CuTe's headers; elsewhere skipped (77). Without a
# GPU: the layouts, the exercise's judge, and the copies on the CPU, under sanitizers; a tile of the product, by its layouts.
# With nvcc: the same copies and the product as kernels, which run where a GPU is.
#   cute.sh CXX SOURCE_FOLDER [cutlass]      cutlass: the product by CUTLASS alone, which takes nvcc 1.5 core-minutes
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

nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
has_gpu() { nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidia0 ]; }
# build_gpu NAME SOURCE [OPTION…]
build_gpu() {
  "$nvcc" -std=c++17 -O3 -isystem build/cute/include -Werror all-warnings -Xcompiler=-Wall,-Wextra "${@:3}" -o "$folder/$1" "$2"
}

if [ "${3:-}" = cutlass ]; then
  if ! [ -e "${nvcc%/bin/nvcc}/include/cublas_v2.h" ]; then
    echo "cute: skipped, there is no nvcc with cuBLAS"
    exit 77
  fi
  build_gpu cutlass examples/cute/cutlass_gemm.cu -DNDEBUG -arch=sm_90a --expt-relaxed-constexpr -lcublas -lcuda || exit 1
  if has_gpu; then
    expect "the product by CUTLASS" 0 '^5 stages +ping-pong, .* right +[0-9.]+ us' "$folder/cutlass"
  else
    expect "the product by CUTLASS without a GPU" 1 '^gemm: line [0-9]+: cudaGetDeviceProperties' "$folder/cutlass"
  fi
  exit $failed
fi

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

build gemm_layouts examples/cute/gemm_layouts.cpp
expect "the product's tile" 0 '^96 ldmatrix, 4 wavefronts each$' "$folder/gemm_layouts" block
expect "the tile without a swizzle" 0 '^96 ldmatrix, 16 wavefronts each$' "$folder/gemm_layouts" unswizzled
expect "the swizzle" 0 '^row 3:  5  4  7  6$' "$folder/gemm_layouts" shared
expect "the fragments" 0 '^row  8:  0\.2  0\.3 ' "$folder/gemm_layouts" fragments
# Rows whose neighbours are not along K: ldmatrix then reads other elements.
cp examples/cute/gemm* "$folder/fault"
sed -i 's/Stride<_32, _1>>{}));/Stride<_1, _8>>{}));/' "$folder/fault/gemm.h"
build faulty_gemm "$folder/fault/gemm_layouts.cpp"
expect "a layout of shared memory across K" 1 '^y\(0, 0\) is [0-9]+, must be ' "$folder/faulty_gemm" block

if [ -z "$nvcc" ]; then
  echo "cute: there is no nvcc; the kernels are not built"
  exit $failed
fi
build_gpu kernels examples/cute/copy.cu || exit 1
build_gpu gemm examples/cute/gemm.cu -arch=sm_80 --expt-relaxed-constexpr || exit 1
if has_gpu; then
  expect "copies on the GPU" 0 '^1512 matrices of 2-byte elements are right$' "$folder/kernels"
  expect "their times" 0 'transposed +[0-9.]+ us +[0-9]+ GB/s' "$folder/kernels"
  expect "the product on the GPU" 0 '^CuTe, not swizzled +right +[0-9.]+ us' "$folder/gemm"
else
  expect "copies without a GPU" 1 '^copy: line [0-9]+: cudaGetDeviceProperties' "$folder/kernels"
  expect "the product without a GPU" 1 '^gemm: line [0-9]+: cudaGetDeviceProperties' "$folder/gemm"
fi
exit $failed
