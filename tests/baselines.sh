#!/usr/bin/env bash
# The baselines of all functions, and the versions in Python's languages, agree with the kernels: bench/baselines/baselines.py on
# the CPU; gpu_baselines.py on the CPU beside the emulated device, the Triton kernels under Triton's interpreter. Skipped (77)
# where no Python has PyTorch and Triton.
#   baselines.sh ROOFTILE SOURCE_FOLDER
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
# expect HOW-MANY WORDS…: a bench with these words has that many figures of baselines, and leaves nobody out.
expect() {
  ROOFTILE_PYTHON=$python TRITON_INTERPRET=1 "$rooftile" bench "${@:2}" --json - >"$record" 2>/dev/null
  found=$("$python" -c 'import json, sys; print(sum(len(row["peers"]) for row in json.load(sys.stdin)["results"]))' <"$record")
  if [ "$found" != "$1" ] || grep -q 'left out' "$record"; then
    echo "baselines: ${*:2} gives $found figures of baselines, expected $1: $(grep -A9 '"notes"' "$record")"
    bad=$((bad + 1))
  fi
}
# measure BASELINES HOW-MANY WORDS…: the same beside the emulated device.
measure() {
  expect "$2" "${@:3}" --device emulated --baselines "$1" --baseline-seconds 0
}
# A row within a program, several rows to one, and one longer than registers hold.
measure PyTorch,Triton 8 softmax layer_norm --forward --dtype f32 --shape 3x1000,2x40000
measure Triton 4 softmax layer_norm --forward --dtype f32 --shape 300x7,5x4095
measure Triton,PyTorch 4 add --dtype f32,f64 --shape 5000
measure PyTorch 2 softmax layer_norm --backward --dtype f32 --shape 9x130
measure PyTorch,torch.compile 6 axpby copy rgb_to_gray --dtype f32,u8
# Every function of rows and elements but l1_ and l2_normalize_backward, which PyTorch has not.
measure PyTorch 33 relu sigmoid tanh silu gelu copy swap scal add axpby dot nrm2 asum dyt geglu swiglu layer_norm l1_normalize \
  l2_normalize rms_norm softmax transpose --dtype f32 --shape 64x130
measure softmax_torch,add_torch 2 softmax add --forward --dtype f32 --shape 9x130 --versions
# On the CPU: PyTorch and the versions in plain Python, NumPy and PyTorch, warm and cold.
expect 8 softmax --forward --dtype f32 --shape 6x130 --threads 1 --versions
expect 10 axpby add --dtype f32 --shape 6x130 --threads 1 --versions --baselines PyTorch,axpby_plain,add_numpy,axpby_numpy
echo "baselines: $bad problems"
[ "$bad" -eq 0 ]
