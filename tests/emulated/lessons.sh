#!/usr/bin/env bash
# Runs the commands of the lessons on the emulated device: a ```sh block that calls scripts/emulate.sh, with a
# ```text block behind it that must be what it prints.
#   lessons.sh SOURCE_FOLDER [--update]    --update: writes what they print into the pages
set -uo pipefail

source=$1
cd "$source" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

runs=0
# Copies a page from standard input, with fresh output in place of what its text blocks hold.
renewed() {
  local line commands="" in_sh=0 in_text=0
  while IFS= read -r line; do
    if [ "$in_text" -eq 1 ]; then
      [ "$line" = '```' ] || continue
      in_text=0
    elif [ "$line" = '```sh' ]; then
      in_sh=1
      commands=""
    elif [ "$line" = '```' ]; then
      in_sh=0
    elif [ "$in_sh" -eq 1 ]; then
      commands+=$line$'\n'
    elif [ "$line" = '```text' ] && [[ $commands = scripts/emulate.sh* ]]; then
      echo "$line"
      bash -c "$commands" 2>&1 </dev/null
      runs=$((runs + 1))
      in_text=1
      commands=""
      continue
    elif [ -n "$line" ]; then
      commands=""
    fi
    echo "$line"
  done
}

bad=0
for page in docs/course/03_what_a_gpu_is.md docs/course/18_debugging.md; do
  renewed <"$page" >"$folder/page"
  if [ "${2:-}" = --update ]; then
    cat "$folder/page" >"$page"
  elif ! diff -u "$page" "$folder/page"; then
    echo "lessons: $page shows something else than its programs print; lessons.sh $source --update writes it anew"
    bad=1
  fi
done
if [ "$runs" -lt 12 ]; then
  echo "lessons: only $runs commands with their output were found"
  bad=1
fi
echo "lessons: $runs commands, $bad problems"
exit "$bad"
