#!/usr/bin/env bash
# Plants the small faults of tests/mutants/*.patch, one at a time, and expects the check that each names to fail.
#   scripts/mutants.sh [NAME…]    of the patches, without .patch; none: all
# Works in build/mutants, on a copy of the sources that is built once; then a fault costs what it concerns, and the
# check of one runs while the next is built. Exit code: 0 all are rejected, 1 some survive, 2 a patch does not apply or
# compile, or a check is red without a fault or ends in another way than by its verdict.
#
# A patch begins with
#   rooftile check softmax --dtype f32    the check, by a program of the build's bin/; exit code 1 is what is expected
#   build: rooftile-cpu-baseline          what holds the fault: CMake's targets
#   Why a check must see it, in a sentence.
set -euo pipefail
cd "$(dirname "$0")/.."

patches=()
for name in "$@"; do patches+=("tests/mutants/$name.patch"); done
[ $# -ne 0 ] || patches=(tests/mutants/*.patch)

work=$PWD/build/mutants
tree=$work/tree
build=$tree/build/release
verdicts=$work/verdicts
processors=$(nproc 2>/dev/null || echo 2)
export GIT_CEILING_DIRECTORIES=$work # the copy is no part of this repository: git apply takes its paths as they are

trouble() {
  echo "mutants: $1" >&2
  exit 2
}

command_of() { sed -n 1p "$1"; }
targets_of() { sed -n 's/^build: //p' "$1"; }

targets=(rooftile_cli)
for patch in "${patches[@]}"; do
  [ -r "$patch" ] || trouble "there is no $patch"
  read -ra its <<<"$(targets_of "$patch")"
  [ ${#its[@]} -ne 0 ] || trouble "$patch: its second line is not \"build: TARGET…\""
  targets+=("${its[@]}")
done

# A fault that an earlier run left, when it was ended, is in objects that look newer than their sources.
if [ -e "$work/planted" ]; then
  rm -rf "$build"
  cp -a "$work/clean" "$build"
  rm "$work/planted"
fi
mkdir -p "$tree" "$work/logs"
: >"$verdicts"
find "$tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files --cached --others --exclude-standard | while read -r file; do
  if [ -f "$file" ]; then printf '%s\0' "$file"; fi
done | tar --null -T - -c | tar -x -C "$tree"

echo "mutants: building without faults"
(cd "$tree" && cmake --preset release -DROOFTILE_ISAS=baseline -DROOFTILE_TESTS=ON -DROOFTILE_EMULATED=ON) \
  >"$work/logs/configure" 2>&1 || trouble "cannot configure, see $work/logs/configure"
cmake --build "$build" --target "${targets[@]}" >"$work/logs/build" 2>&1 || trouble "cannot build, see $work/logs/build"
rm -rf "$work/clean"
cp -a "$build" "$work/clean"

# run NAME COMMAND: in the background, with the programs and libraries as they are now; writes its exit code.
run() {
  local name=$1 command=$2 folder=$work/runs/$1
  while [ "$(jobs -rp | wc -l)" -ge "$processors" ]; do sleep 0.2; done
  rm -rf "$folder"
  mkdir -p "$folder"
  cp -a "$build/bin" "$build/lib" "$folder"
  (
    code=0
    ROOFTILE_CPU=baseline LD_LIBRARY_PATH=$folder/lib PATH=$folder/bin:$PATH timeout 900 bash -c "$command" >"$work/logs/$name" 2>&1 </dev/null ||
      code=$?
    rm -rf "$folder"
    echo "$code $name" >>"$verdicts"
  ) &
}

# Each check is green where there is no fault; without that, a red one would say nothing.
mapfile -t commands < <(for patch in "${patches[@]}"; do command_of "$patch"; done | sort -u)
for i in "${!commands[@]}"; do run "without_fault_$i" "${commands[i]}"; done
wait
declare -A red
while read -r code name; do
  if [ "$code" -ne 0 ]; then red[${commands[${name#without_fault_}]}]=$work/logs/$name; fi
done <"$verdicts"
: >"$verdicts"

# Without its fault, and with the objects from before: as old as they were, so that nothing is built again.
restore() {
  local file
  while read -r file; do cp -p "$file" "$tree/$file"; done < <(git apply --numstat "$1" | cut -f3)
  (cd "$build" && find . -type f -newer "$work/planted") | while read -r file; do
    if [ -e "$work/clean/$file" ]; then cp -a "$work/clean/$file" "$build/$file"; else rm "$build/$file"; fi
  done
  rm "$work/planted"
}

for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  read -ra its <<<"$(targets_of "$patch")"
  if [ -n "${red[$(command_of "$patch")]:-}" ]; then
    echo "red $name" >>"$verdicts"
    continue
  fi
  touch "$work/planted"
  if ! git -C "$tree" apply "$PWD/$patch" 2>"$work/logs/$name"; then
    echo "unapplied $name" >>"$verdicts"
  elif ! cmake --build "$build" --target "${its[@]}" >"$work/logs/$name" 2>&1; then
    echo "unbuilt $name" >>"$verdicts"
  elif [ -z "$(find "$build/bin" "$build/lib" -type f -newer "$work/planted" -print -quit)" ]; then
    echo "unchanged $name" >>"$verdicts"
  else
    run "$name" "$(command_of "$patch")"
  fi
  restore "$patch"
done
wait

survivors=0
errors=0
while read -r verdict name; do
  case $verdict in
    1) continue ;;
    0) survivors=$((survivors + 1)) && echo "$name survives: $(command_of "tests/mutants/$name.patch")" ;;
    red) errors=$((errors + 1)) && echo "$name: its check fails without it, see ${red[$(command_of "tests/mutants/$name.patch")]}" ;;
    unapplied) errors=$((errors + 1)) && echo "$name: the patch does not apply, see $work/logs/$name" ;;
    unbuilt) errors=$((errors + 1)) && echo "$name: does not compile, see $work/logs/$name" ;;
    unchanged) errors=$((errors + 1)) && echo "$name: its targets do not hold the fault: they changed nothing in bin and lib" ;;
    *) errors=$((errors + 1)) && echo "$name: its check ends with $verdict, see $work/logs/$name" ;;
  esac
done < <(sort -k2 "$verdicts")
if [ "$errors" -ne 0 ]; then trouble "${#patches[@]} mutants: $survivors survive, $errors in trouble"; fi
if [ "$survivors" -ne 0 ]; then
  echo "${#patches[@]} mutants: $survivors survive"
  exit 1
fi
echo "${#patches[@]} mutants: all rejected"
