#!/usr/bin/env bash
# Copies examples/skeleton_op, or examples/skeleton_elements, to rooftile/ops/NAME under the new name:
#   scripts/new_op.sh NAME              a function of rows
#   scripts/new_op.sh --elements NAME   an elementwise function
set -euo pipefail
cd "$(dirname "$0")/.."

from=examples/skeleton_op
if [ "${1:-}" = --elements ]; then
  from=examples/skeleton_elements
  shift
fi
op=${1:-}
if [ -z "$op" ] || [ "$op" = --help ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi
if [[ ! $op =~ ^[a-z][a-z0-9]*(_[a-z0-9]+)*$ ]]; then
  echo "new_op.sh: the name of an op is in snake_case, like layer_norm; seen: '$op'" >&2
  exit 2
fi
to=rooftile/ops/$op
if [ -e "$to" ]; then
  echo "new_op.sh: $to exists already" >&2
  exit 1
fi
pascal=$(sed -E 's/(^|_)([a-z0-9])/\U\2/g' <<<"$op")
cp -r "$from" "$to"
for file in "$to"/skeleton.*; do mv "$file" "$to/$op${file##*/skeleton}"; done
find "$to" -type f -exec sed -i "s/skeleton/$op/g; s/Skeleton/$pascal/g" {} +
# The copy's README is a lesson to be written, not directions for copying.
printf '# %s\n\nThe lesson: equation, bytes, flops, which limit binds, the ladder, when it loses, an exercise.\n' "$op" >"$to/README.md"
echo "$to: build, then rooftile check $op, and rooftile check $op --device emulated"
