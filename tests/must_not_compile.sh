#!/usr/bin/env bash
# Each tests/must_not_compile/*.cpp must be refused with the message that its first line expects, and must compile
# with -DROOFTILE_FIXED: so it is refused for its own reason and not for a missing header.
#   must_not_compile.sh COMPILER FOLDER INCLUDE_FOLDER…
set -uo pipefail

compiler=$1
folder=$2
shift 2
flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Werror=unused-result)
for include in "$@"; do flags+=("-I$include"); done

bad=0
count=0
complain() {
  echo "$1"
  bad=$((bad + 1))
}
for file in "$folder"/*.cpp; do
  [ -f "$file" ] || continue
  count=$((count + 1))
  name=$(basename "$file")
  expected=$(sed -n '1s,^// expect: ,,p' "$file")
  if [ -z "$expected" ]; then
    complain "$name: its first line is not // expect: REGULAR EXPRESSION"
    continue
  fi
  if output=$("$compiler" "${flags[@]}" "$file" 2>&1); then
    complain "$name: compiles, and must not"
  elif ! grep -E 'error:' <<<"$output" | grep -qE "$expected"; then
    complain "$name: no error matches '$expected' in
$output"
  fi
  if ! output=$("$compiler" "${flags[@]}" -Werror -DROOFTILE_FIXED "$file" 2>&1); then
    complain "$name: must compile with -DROOFTILE_FIXED, and does not:
$output"
  fi
done
if [ "$count" -eq 0 ]; then complain "there is no file in $folder"; fi
echo "must_not_compile: $count files, $bad problems"
[ "$bad" -eq 0 ]
