#!/usr/bin/env bash
# The traces that the lessons' pictures are held against are what the kernels ask of memory today.
#   traces_test.sh ROOFTILE SOURCE_FOLDER [--update]
set -uo pipefail

rooftile=$1
source=$2
bad=0
for file in "$source"/docs/figures/traces/*.json; do
  op=$(basename "$file" .json)
  mapfile -t variants < <(sed -n 's/^ *"variant": "\(.*\)".*/\1/p' "$file")
  shape=$(tr -d ' \n' <"$file" | sed -n 's/.*"shape":\[\([0-9,]*\)\].*/\1/p' | tr , x)
  dtype=$(sed -n 's/^ *"dtype": "\(.*\)".*/\1/p' "$file" | head -1)
  fresh=$("$rooftile" trace "$op" --shape "$shape" --dtype "$dtype" "${variants[@]/#/--variant=}" --json -) || bad=$((bad + 1))
  counts() { grep -E '"(variant|access|requests|sectors|wavefronts|text)"' | tr -d ' ,' | sort; }
  if [ "${3:-}" = --update ]; then
    printf '%s\n' "$fresh" | sed '/"command"\|"commit"\|"date"\|"line"\|"rooftile"\|"schema"/d' >"$file"
  elif ! diff <(counts <"$file") <(counts <<<"$fresh"); then
    echo "traces: ${file#"$source"/} differs from what $op's kernels ask; traces_test.sh … --update writes it anew"
    bad=$((bad + 1))
  fi
done
echo "traces: $bad problems"
[ "$bad" -eq 0 ]
