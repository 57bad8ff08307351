#!/usr/bin/env bash
# Random cases by the hundred thousand, on all processors: each function's are cut into parts with seeds of their own,
# and a line tells of a function when its last part is done.
#   scripts/random_check.sh [--count N] [--seed S] [--preset NAME] [--isas LIST] [--device D] [--jobs J] [FUNCTION…]
#   --count N      cases of each function (100000)
#   --seed S       of the first part; the next ones have the seeds that follow (1)
#   --preset NAME  which build: asan-ubsan (taken where none is said), release, debug
#   --isas LIST    instruction sets, as ROOFTILE_ISAS has them (baseline;avx2;avx512); each case runs on one of those
#                  that this CPU has
#   --device D     cpu, emulated (cpu)
#   --jobs J       at a time (as many as there are processors)
# Rungs and variants refuse some of the cases that they are drawn for; the line says how many were taken.
# Exit code: 0 all are right, 1 some are wrong, 2 it could not be built or run. What every part printed stands in
# build/random-check/.
set -euo pipefail
cd "$(dirname "$0")/.."

trouble() {
  echo "random_check.sh: $1" >&2
  exit 2
}
count=100000 seed=1 preset=asan-ubsan isas="baseline;avx2;avx512" device=cpu jobs=$(nproc 2>/dev/null || echo 2)
functions=()
while [ $# -gt 0 ]; do
  case $1 in
    --count | --seed | --preset | --isas | --device | --jobs)
      [ $# -ge 2 ] || trouble "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2
      ;;
    -*) trouble "unknown option $1; it takes --count, --seed, --preset, --isas, --device and --jobs" ;;
    *)
      functions+=("$1")
      shift
      ;;
  esac
done
for option in count seed jobs; do
  [[ ${!option} =~ ^[1-9][0-9]{0,8}$ ]] || trouble "--$option is '${!option}', must be a whole number from 1"
done
case $device in cpu | emulated) ;; *) trouble "--device is '$device', must be cpu or emulated" ;; esac

# So many cases to a part: few enough that no processor waits for the last ones.
part_cases=2000
parts=$(((count + part_cases - 1) / part_cases))

logs=$PWD/build/random-check
build=$PWD/build/$preset
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs"/*.done
scripts/install_packages.sh
emulated=OFF
[ "$device" = cpu ] || emulated=ON
echo "random_check.sh: building $preset"
{
  cmake --preset "$preset" "-DROOFTILE_ISAS=$isas" -DROOFTILE_OPS= -DROOFTILE_EMULATED=$emulated \
    -DROOFTILE_EMULATED_F16=ON &&
    cmake --build --preset "$preset" --target rooftile_cli rooftile_plugins
} >"$logs/build.log" 2>&1 || {
  tail -n 30 "$logs/build.log" >&2
  trouble "$preset cannot be built, see $logs/build.log"
}
rooftile=$build/bin/rooftile
if [ ${#functions[@]} -eq 0 ]; then
  listed=$("$rooftile" list --json -) || trouble "$rooftile list fails"
  mapfile -t functions < <(sed -n 's/^ *"function": "\(.*\)",\{0,1\}$/\1/p' <<<"$listed")
fi
[ ${#functions[@]} -ne 0 ] || trouble "$rooftile list names no function"

# One line on a function whose parts are all done.
summary() {
  local function=$1 code_of_all=0 logs_of=() part code
  for ((part = 0; part < parts; ++part)); do
    logs_of+=("$logs/$function.$part.log")
    code=$(cat "$logs/$function.$part.done")
    [ "$code" -le "$code_of_all" ] || code_of_all=$code
  done
  local pairs cases verdict=ok
  # Each part covers most pairs of row and column counts; the largest number is a floor of what all cover.
  pairs=$(sed -n 's/^note: .* with \([0-9]* of [0-9]* pairs of row and column counts\).*/\1/p' "${logs_of[@]}" | sort -n | tail -n 1)
  cases=$(sed -n 's/^note: [a-z0-9_]*: \([0-9]*\) random cases.*/\1/p' "${logs_of[@]}" | awk '{ n += $1 } END { print n + 0 }')
  case $code_of_all in
    0) ;;
    1) verdict="WRONG, see $logs/$function.*.log" ;;
    *) verdict="could not be checked (exit code $code_of_all), see $logs/$function.*.log" ;;
  esac
  echo "$function: $cases of $count cases taken${pairs:+, $pairs}: $verdict"
  if [ "$code_of_all" -ne 0 ]; then
    for ((part = 0; part < parts; ++part)); do
      [ "$(cat "$logs/$function.$part.done")" -ne 0 ] || continue
      grep -hE "random case|died|did not return|ERROR: |runtime error" "$logs/$function.$part.log" | head -n 5 ||
        tail -n 5 "$logs/$function.$part.log"
    done | head -n 20 | sed 's/^/  /'
  fi
}

# one FUNCTION PART: a part, and the line on its function where it was the last one.
one() {
  local function=$1 part=$2 code=0 cases=$part_cases direction=forward
  case $function in *_backward) direction=backward ;; esac
  [ "$part" -lt $((parts - 1)) ] || cases=$((count - part_cases * (parts - 1)))
  "$rooftile" check "$function" --"$direction" --device "$device" --random-only --random "$cases" --seed $((seed + part)) \
    >"$logs/$function.$part.log" 2>&1 </dev/null || code=$?
  echo "$code" >"$logs/$function.$part.done.new"
  (
    flock 9
    mv "$logs/$function.$part.done.new" "$logs/$function.$part.done"
    if [ "$(find "$logs" -name "$function.*.done" | wc -l)" -eq "$parts" ]; then summary "$function"; fi
  ) 9>"$logs/lock"
}
export -f one summary
export rooftile device logs parts part_cases count seed
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}

begin=$SECONDS
for function in "${functions[@]}"; do
  for ((part = 0; part < parts; ++part)); do printf '%s\0%s\0' "$function" "$part"; done
done | xargs -0 -n 2 -P "$jobs" bash -c 'one "$@"' one || trouble "a part could not be run, see $logs"

wrong=0 broken=0
for function in "${functions[@]}"; do
  worst=$(cat "$logs/$function".*.done | sort -n | tail -n 1)
  case $worst in 0) ;; 1) wrong=$((wrong + 1)) ;; *) broken=$((broken + 1)) ;; esac
done
spent="$count cases of each, device $device, $preset, $((SECONDS - begin)) s"
[ $broken -eq 0 ] || trouble "$broken of ${#functions[@]} functions could not be checked, $wrong are wrong ($spent)"
if [ $wrong -ne 0 ]; then
  echo "$wrong of ${#functions[@]} functions are wrong ($spent)"
  exit 1
fi
echo "${#functions[@]} functions: all right ($spent)"
