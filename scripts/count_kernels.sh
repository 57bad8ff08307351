#!/usr/bin/env bash
# Counts the GPU kernels of each op in a build with nvcc; the ladders' are not counted. Exit code: 1 where an op has more than
# it may: 40 a function of rows with its backward, 10 an elementwise function, or what `known` below says of today's.
#   scripts/count_kernels.sh [BUILD]     build/cuda
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/cuda}
# More than allowed, each a shape, layout or dtype with a kernel of its own: figures that may only shrink.
known="activation 108
attention 56
dyt 88
gated 54
gemm 49
layer_norm 108
normalize 136
rms_norm 84
softmax 93"

bad=0
counted=0
for folder in rooftile/ops/*/; do
  op=$(basename "$folder")
  mapfile -t objects < <(find "$build" -path "*rooftile-cuda*/ops/$op/*.cu.o" -not -path '*/ladder/*')
  [ ${#objects[@]} -ne 0 ] || continue
  counted=$((counted + 1))
  # nvcc gives each kernel's host stub a static variable, which is there also where the stub is inlined.
  kernels=$(nm "${objects[@]}" | grep -oE ' _ZGVZL[0-9]+__device_stub__.*' | sort -u | wc -l)
  functions=$(grep -hoE '^Status [a-z0-9_]+\(' "$folder$op.h" | grep -v _workspace)
  if grep -qs ROOFTILE_LANES "$folder$op.kernels.cpp"; then
    allowed=$((10 * $(wc -l <<<"$functions")))
  else
    allowed=$((40 * $(grep -cv '_backward(' <<<"$functions")))
  fi
  most=$(awk -v op="$op" '$1 == op { print $2 }' <<<"$known")
  echo "$op: $kernels kernels, $allowed allowed${most:+, $most known}"
  [ "$kernels" -gt 0 ] || { echo "count_kernels.sh: no kernel was found in $op's objects" >&2 && bad=1; }
  if [ "$kernels" -gt "${most:-$allowed}" ]; then
    echo "count_kernels.sh: $op has $kernels kernels, at most ${most:-$allowed}" >&2
    bad=1
  elif [ -n "$most" ] && [ "$kernels" -lt "$most" ]; then
    echo "count_kernels.sh: $op has $kernels kernels by now; write that in place of $most" >&2
    bad=1
  fi
done
[ "$counted" -ne 0 ] || { echo "count_kernels.sh: $build has no objects of nvcc" >&2 && exit 1; }
exit $bad
