#!/usr/bin/env bash
# Makes a record of this machine's GPU: builds, checks, times everything beside the baselines. What ended early goes on where
# it was when the script is run again: each row is in its part's file as soon as it is measured.
#   scripts/bench_gpu.sh [--record FILE] [--parts N] [--seconds N] [STEP…]
# Steps, in this order, all of them where none is named:
#   build      build/cuda, with the tests that need a GPU
#   check      every case of every kernel against the oracle
#   test       graphs, threads and streams (cuda_graph_test)
#   sanitize   compute-sanitizer's four tools over the kernels
#   bench      N parts (1), each for so many seconds at most (no end), into build/gpu/part-….json
#   merge      the parts made one record: FILE (build/gpu/record.json)
# Baselines: PyTorch and Triton where python3 (or $ROOFTILE_PYTHON) has them; Liger where scripts/install_baselines.sh --gpu put
# it into build/gpu-baselines.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "bench_gpu.sh: $1" >&2
  exit 2
}
all=(build check test sanitize bench merge)
record=build/gpu/record.json parts=1 seconds="" steps=()
while [ $# -gt 0 ]; do
  case $1 in
    --record | --parts | --seconds)
      [ $# -ge 2 ] || fail "$1 needs a value"
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    build | check | test | sanitize | bench | merge) steps+=("$1") ;;
    *) fail "unknown word $1; it takes --record, --parts, --seconds and the steps ${all[*]}" ;;
  esac
  shift
done
[[ $parts =~ ^[1-9][0-9]*$ ]] || fail "--parts is \"$parts\", expected a number from 1"
[ ${#steps[@]} -gt 0 ] || steps=("${all[@]}")
wanted() { [[ " ${steps[*]} " == *" $1 "* ]]; }

bin=build/cuda/bin
mkdir -p build/gpu
if [ -d build/gpu-baselines ]; then
  PYTHONPATH=$PWD/build/gpu-baselines${PYTHONPATH:+:$PYTHONPATH}
  export PYTHONPATH
fi

if wanted build; then
  cmake --preset cuda -DROOFTILE_TESTS=ON -DROOFTILE_EMULATED=OFF
  cmake --build --preset cuda --target rooftile_cli rooftile_plugins cuda_graph_test
fi
[ -x $bin/rooftile ] || fail "there is no $bin/rooftile; the step build makes it"
if wanted check; then
  $bin/rooftile check --device cuda
fi
if wanted test; then
  $bin/cuda_graph_test
fi
if wanted sanitize; then
  make sanitize-gpu
fi
if wanted bench; then
  for ((part = 1; part <= parts; ++part)); do
    echo "== part $part/$parts"
    # Rows that failed are told and left out (exit code 1); they are tried again by the next run.
    $bin/rooftile bench --device cuda --full --part "$part/$parts" --json "build/gpu/part-$part-of-$parts.json" --resume \
      ${seconds:+--seconds "$seconds"} || [ $? -eq 1 ]
  done
fi
if wanted merge; then
  files=()
  for ((part = 1; part <= parts; ++part)); do
    files+=("build/gpu/part-$part-of-$parts.json")
  done
  $bin/rooftile bench --merge "${files[@]}" --json "$record"
fi
