#!/usr/bin/env bash
# Whole CUDA programs on the emulated device: program.cu prints what a GPU's runtime would say; what is no launch is refused.
#   program.sh SOURCE_FOLDER
set -uo pipefail

source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0
expect() {  # expect WHAT PATTERN TEXT
  grep -qE -- "$2" <<<"$3" || { echo "program.sh: $1: no \"$2\" in: $3"; bad=1; }
}

said=$("$source/scripts/emulate.sh" "$source/tests/emulated/program.cu" 2>&1) || bad=1
for line in 'allocate: no error' 'too much: out of memory' 'copied to host memory: invalid argument' \
  'copied past the end: invalid argument' 'last: invalid argument' 'last again: no error' \
  '2048 threads: invalid configuration argument' 'launched <<<once>>>: no error' 'ended: no error' 'sum: 32643' \
  'freed: no error' 'freed twice: invalid argument'; do
  expect plain "^$line\$" "$said"
done

said=$("$source/scripts/emulate.sh" --checked "$source/tests/emulated/program.cu" race 2>&1) || bad=1
expect checked '^sum: 32643$' "$said"
expect checked '^race launched: no error$' "$said"
expect checked '^race ended: .*race.*program.cu:2[0-9]' "$said"
expect checked '^race for good: .*race' "$said"

printf '__global__ void k();\nint main() {\n  k<<<1, 1>>>;\n}\n' >"$folder/broken.cu"
said=$("$source/scripts/cuda_to_cpp.py" "$folder/broken.cu" 2>&1) && bad=1
expect refused 'broken.cu:3: a launch is kernel<<<grid, block>>>\(arguments\)' "$said"
exit $bad
