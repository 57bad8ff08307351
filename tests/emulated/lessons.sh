#!/usr/bin/env bash
# Runs the commands of the lessons as they are printed, in a folder that looks like a fresh clone with the command built:
# every ```sh block. A ```text block behind one must be what it prints. Not run: what builds, needs a GPU or PyTorch, or
# changes the sources (make, cmake, nvcc, build/…/bin/…, scripts/new_op.sh, git, docker). Checks and benches need only begin, and print nothing that
# a page shows: that would hang on how fast a machine is, and on its instruction set.
# Lesson 14's programs need CuTe's headers in build/cute; without them its blocks stay as they are.
# A judge, and what looks at this machine, may say "not yet" (exit code 1).
#   lessons.sh SOURCE_FOLDER ROOFTILE [--update [PAGE…]]    ROOFTILE: the command, or "" for blocks of scripts/emulate.sh alone
#                                                   --update: writes what they print into the pages
set -uo pipefail

source=$(cd "$1" && pwd) || exit 1
rooftile=${2:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

clone=$folder/clone
mkdir "$clone"
for entry in "$source"/* "$source"/.clang-format; do
  case ${entry##*/} in exercises | report*.html) ;; *) ln -s "$entry" "$clone/" ;; esac
done
cd "$clone" || exit 1
pages=(README.md docs/course/[0-9]*.md rooftile/ops/*/README.md rooftile/ops/*/lessons/*.md)
[ $# -le 3 ] || pages=("${@:4}")
[ -z "$rooftile" ] || PATH=$(dirname "$rooftile"):$PATH

runs=0
without_cute=0
: >"$folder/failed"
# printed COMMANDS: what they print; a line for each that fails goes to the file `failed`.
printed() {
  local line text code seconds
  while IFS= read -r line; do
    case $line in
      g++*build/cute/* | build/cute/*)
        if ! [ -e build/cute/flags ]; then
          touch "$folder/no_cute"
          continue
        fi
        ;;
      make* | cmake* | nvcc* | build/* | compute-sanitizer* | nsys* | export* | git* | [A-Z]*=build/* | [A-Z]*=*\ build/* | scripts/new_op.sh* | scripts/install_* | docker* | '') continue ;;
    esac
    [[ $line = scripts/* || -n $rooftile ]] || continue
    case $line in
      "rooftile check"* | "rooftile bench"* | "rooftile devices"*) # long ones need only begin as they should
        case $line in *--versions*) seconds=10 ;; *) seconds=1 ;; esac # in plain Python alone they end, as they should
        text=$(timeout -k 1 "$seconds" bash -c "$line" 2>&1 </dev/null)
        code=$?
        [ "$code" -ne 0 ] || text=""
        [ "$code" -ne 124 ] && [ "$code" -ne 137 ] || continue  # a bench ends after what it measures just now
        ;;
      *)
        text=$(bash -c "$line" 2>&1 </dev/null)
        code=$?
        ;;
    esac
    [ -z "$text" ] || printf '%s\n' "$text"
    [ "$code" -eq 0 ] || [[ $code -eq 1 && $line = "rooftile exercise check"* ]] || [[ $line = *"# exit code $code"* ]] ||
      [[ $line = scripts/emulate.sh* && $code -eq 1 ]] || [[ $line = scripts/check_setup.sh* && $code -eq 1 ]] || printf '%s: exit code %s: %s\n' "$line" "$code" "$text" >>"$folder/failed"
  done <<<"$1"
}

# Copies a page from standard input, with fresh output in place of what its text blocks hold.
renewed() {
  local line commands="" in_sh=0 in_text=0 shown
  while IFS= read -r line; do
    if [ "$in_text" -eq 1 ]; then
      [ "$line" = '```' ] || continue
      in_text=0
    elif [ "$line" = '```sh' ]; then
      in_sh=1
      commands=""
      rm -f "$folder/no_cute"
    elif [ "$line" = '```' ] && [ "$in_sh" -eq 1 ]; then
      in_sh=0
      shown=$(printed "$commands" | sed 's, *$,,')  # print_layout's lines end in a blank
      runs=$((runs + 1))
      ! [ -e "$folder/no_cute" ] || commands="" without_cute=$((without_cute + 1))
    elif [ "$in_sh" -eq 1 ]; then
      commands+=$line$'\n'
    elif [ "$line" = '```text' ] && [ -n "$commands" ] && { [ -n "$rooftile" ] || [[ $commands = scripts/* ]]; }; then
      echo "$line"
      printf '%s\n' "$shown"
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
for page in "${pages[@]}"; do
  rm -rf exercises/*  # not what is hidden there: precompiled headers
  renewed <"$source/$page" >"$folder/page"
  if [ "${3:-}" = --update ]; then
    cat "$folder/page" >"$source/$page"
  elif ! diff -u "$source/$page" "$folder/page"; then
    echo "lessons: $page shows something else than its programs print; lessons.sh $source ROOFTILE --update writes it anew"
    bad=$((bad + 1))
  fi
  if [ -s "$folder/failed" ]; then
    sed "s|^|lessons: $page: |" "$folder/failed"
    bad=$((bad + 1))
    : >"$folder/failed"
  fi
done
if [ "$runs" -lt 12 ] && [ $# -le 3 ]; then
  echo "lessons: only $runs blocks of commands were found"
  bad=$((bad + 1))
fi
[ "$without_cute" -eq 0 ] ||
  echo "lessons: $without_cute blocks of them not run: there are no headers of CuTe in build/cute (scripts/install_baselines.sh --cute)"
echo "lessons: $runs blocks of commands, $bad problems"
[ "$bad" -eq 0 ]
