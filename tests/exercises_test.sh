#!/usr/bin/env bash
# Every exercise of the course: its solution and other right answers (right_1, …) are accepted, its start file compiles and is
# rejected, and each wrong answer is rejected for the reason that its first line names:
#   // Wrong [KIND]: what is wrong
# and with the words that a second line gives:
#   // Says: words of the verdict
#   exercises_test.sh ROOFTILE SOURCE_FOLDER
set -uo pipefail

rooftile=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir exercises

# judged NAME FILE KIND: by one exercise's judge, which says KIND ("right": solved), and what the file's second line wants.
judged() {
  local text code says begin=$SECONDS
  says=$(sed -n '2s/^\/\/ Says: //p' "$2")
  text=$("$rooftile" exercise check "$1" --file "$2" 2>&1)
  code=$?
  if [ "$3" = right ]; then
    if [ "$code" -ne 0 ] || [[ $text != "$1 solved: right in "* ]]; then
      echo "exercises: ${2#"$source"/} is not accepted: $text"
      return
    fi
  elif [ "$code" -ne 1 ] || [[ $text != "$1 [$3]: "* ]]; then
    echo "exercises: ${2#"$source"/} is not rejected as [$3]: $text"
    return
  elif [[ $text != *"$says"* ]]; then
    echo "exercises: ${2#"$source"/} is not told \"$says\": $text"
    return
  fi
  # A verdict within 10 s on an idle machine; this one may be busy.
  [ $((SECONDS - begin)) -le 60 ] || echo "exercises: ${2#"$source"/} took $((SECONDS - begin)) s"
  echo "ok $text" | head -1
}

one() { # one EXERCISE_FOLDER
  local name answer kind wrong=0
  name=$(basename "$1")
  answer=$(ls "$1"/solution.*)
  judged "$name" "$answer" right
  kind=$(sed -n 's/.*"start": *"\([a-z]*\)".*/\1/p' "$1/exercise.json")
  judged "$name" "$1/start.${answer##*.}" "$kind"
  for answer in "$1"/wrong_*; do
    kind=$(sed -n '1s/^\/\/ Wrong \[\(.*\)\]: .*/\1/p' "$answer")
    judged "$name" "$answer" "${kind:-a first line: // Wrong [KIND]: what}"
    wrong=$((wrong + 1))
  done
  for answer in "$1"/right_*; do
    [ ! -e "$answer" ] || judged "$name" "$answer" right
  done
  [ "$wrong" -ge 3 ] || echo "exercises: $name has $wrong wrong answers, at least 3 are needed"
}

jobs=()
for exercise in "$source"/rooftile/ops/*/exercise/*/; do
  one "${exercise%/}" >"$folder/$(basename "$exercise").txt" 2>&1 &
  jobs+=($!)
  [ $((${#jobs[@]} % $(nproc))) -ne 0 ] || wait "${jobs[@]}"
done
wait
cat "$folder"/*.txt
bad=$(cat "$folder"/*.txt | grep -vc '^ok ')

# README's picture shows what the judge says today; `exercises_test.sh ROOFTILE SOURCE --update` writes it.
cp "$source/rooftile/ops/blas1/exercise/vector_add/wrong_2.cu" exercises/vector_add.cu
shown=$(for line in 'sed -n 10p exercises/vector_add.cu' 'rooftile exercise check vector_add'; do
  echo "$ $line"
  PATH=$(dirname "$rooftile"):$PATH bash -c "$line" 2>&1 | sed -E 's/\([0-9.]+ s\)/(1.4 s)/'
done)
rm exercises/vector_add.cu
if [ "${3:-}" = --update ]; then
  echo "$shown" >"$source/docs/figures/verdict.txt"
elif [ "$shown" != "$(cat "$source/docs/figures/verdict.txt")" ]; then
  echo "exercises: docs/figures/verdict.txt is not what the judge says: $shown"
  bad=$((bad + 1))
fi

# The way that a learner takes: list, start, check (not yet), three hints, solution, check (solved), progress.
step() { # step CODE PATTERN WORDS…
  local code=$1 pattern=$2 text
  shift 2
  text=$("$rooftile" exercise "$@" 2>&1)
  if [ "$?" -ne "$code" ] || ! grep -qE -e "$pattern" <<<"$text"; then
    echo "exercises: exercise $* does not end with $code and /$pattern/: $text"
    bad=$((bad + 1))
  fi
}
step 0 '^vector_add +Your first kernel.* -$' list
step 0 'exercises/vector_add.cu' start vector_add
step 3 'is there already' start vector_add
step 1 '\[nothing\].*No thread stores' check vector_add
for hint in 1 2 3 3; do step 0 "^hint $hint of 3: " hint vector_add; done
step 0 '^vector_add .* begun$' list
echo 'int x = ;' >>exercises/vector_add.cu
step 1 '\[compile\].*vector_add.cu:[0-9]+:.*error' check vector_add
echo 'namespace n {' >exercises/vector_add.cu
step 1 '\[compile\].* a ; or a } may be missing' check vector_add
sed 's/^}$/  for (long long k = 0; n > 0; k = 0) z[k] = 0;\n}/' "$source/rooftile/ops/blas1/exercise/vector_add/solution.cu" \
  >exercises/vector_add.cu
step 1 '\[endless\].* A loop never ends' check vector_add
step 0 '^__global__ void add' solution vector_add
"$rooftile" exercise solution vector_add >exercises/vector_add.cu
step 0 '^vector_add solved: ' check vector_add
step 0 '^1 of [0-9]+ exercises solved' progress
step 0 '^vector_add .* solved$' list
echo 'spoiled' >exercises/progress.json
step 0 '^0 of [0-9]+ exercises solved' progress
step 2 'no exercise "vector_ad" \(did you mean vector_add\?\)' start vector_ad
step 3 'no such file; .rooftile exercise start tanh' check tanh

echo "exercises: ${#jobs[@]} exercises, $(cat "$folder"/*.txt | grep -c '^ok ') verdicts as expected, $bad problems"
[ "$bad" -eq 0 ] && [ "${#jobs[@]}" -ge 10 ]
