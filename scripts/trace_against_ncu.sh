#!/usr/bin/env bash
# The trace's counts beside Nsight Compute's, kernel by kernel: sectors a request and bank conflicts. Needs a GPU, ncu
# with leave to read its counters, and a build of rooftile-cuda.so beside the emulated device.
#   trace_against_ncu.sh ROOFTILE [OP:VARIANT:SHAPE:DTYPE …]
set -uo pipefail

if [ $# -lt 1 ]; then
  echo "usage: trace_against_ncu.sh ROOFTILE [OP:VARIANT:SHAPE:DTYPE ...]" >&2
  exit 2
fi
rooftile=$1
shift
# A library's kernel and naive rungs; small enough for the emulated device, with whole tiles and odd ends among them.
if [ $# -eq 0 ]; then
  set -- add:tile:1048576:f32 add:01_one_element:1048576:f32 dot:03_shared_memory:1048576:f32 \
    softmax:tile:512x1024:bf16 transpose:01_naive:512x512:f32 transpose:03_shared:512x512:f32
fi
bad=0
for kernel in "$@"; do
  IFS=: read -r op variant shape dtype rest <<<"$kernel"
  if [ -z "${dtype:-}" ] || [ -n "${rest:-}" ]; then
    echo "trace_against_ncu: \"$kernel\": write it as add:tile:1048576:f32" >&2
    exit 2
  fi
  "$rooftile" profile "$op" --variant "$variant" --shape "$shape" --dtype "$dtype" --against-trace || bad=$((bad + 1))
  echo
done
echo "trace_against_ncu: $# kernels, $bad not measured"
[ "$bad" -eq 0 ]
