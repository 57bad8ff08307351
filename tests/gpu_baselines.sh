#!/usr/bin/env bash
# The GPU's baselines agree with the kernels: bench/baselines/gpu_baselines.py on the CPU beside the emulated device, the Triton kernels
# under Triton's interpreter. Skipped (77) where no Python has PyTorch and Triton.
#   gpu_baselines.sh ROOFTILE SOURCE_FOLDER
set -uo pipefail

rooftile=$1
source=$2
python=${ROOFTILE_PYTHON:-$source/build/baselines-venv/bin/python}
[ -x "$(command -v "$python")" ] || python=python3
if ! "$python" -c 'import torch, triton' 2>/dev/null; then
  echo "gpu_baselines: skipped, $python has no torch and triton"
  exit 77
fi
record=$(mktemp)
trap 'rm -f "$record"' EXIT
bad=0
# measure BASELINES HOW-MANY WORDS…: that many figures of baselines, and nobody is left out.
measure() {
  baselines=$1 count=$2
  shift 2
  ROOFTILE_PYTHON=$python TRITON_INTERPRET=1 "$rooftile" bench "$@" --device emulated --baselines "$baselines" --baseline-seconds 0 \
    --json - >"$record" 2>/dev/null
  found=$(grep -c '"of_copy"' "$record")
  if [ "$found" -ne "$count" ] || grep -q 'left out' "$record"; then
    echo "gpu_baselines: $* with $baselines gives $found figures of baselines, expected $count: $(grep -A9 '"notes"' "$record")"
    bad=$((bad + 1))
  fi
}
# A row within a program, several rows to one, and one longer than registers hold.
measure PyTorch,Triton 8 softmax layer_norm --forward --dtype f32 --shape 3x1000,2x40000
measure Triton 4 softmax layer_norm --forward --dtype f16 --shape 300x7,5x4095
measure Triton,PyTorch 4 add --dtype f32,f64 --shape 5000
measure PyTorch 2 softmax layer_norm --backward --dtype f32 --shape 9x130
measure PyTorch,torch.compile 6 axpby copy rgb_to_gray --dtype f32,u8
echo "gpu_baselines: $bad problems"
[ "$bad" -eq 0 ]
