#!/usr/bin/env bash
# Compiles one CUDA source for the emulated device and runs it: no GPU and no CUDA toolkit is needed. The source is a
# whole CUDA program (examples/cuda_program.cu), or has a main that calls rooftile::emulated::launch (examples/emulated/).
#   scripts/emulate.sh [--checked | --gdb] FILE.cu [ARGUMENT...]
# --checked looks for races, bounds, unwritten memory and missing barriers; --gdb compiles without optimising and
# opens the debugger. Objects are kept in build/emulate.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
mode=plain
case ${1:-} in
  --checked | --gdb)
    mode=${1#--}
    shift
    ;;
esac
if [ $# -eq 0 ] || [ ! -f "$1" ]; then
  echo "emulate: there is no file ${1:-given}; usage: scripts/emulate.sh [--checked | --gdb] FILE.cu [ARGUMENT...]" >&2
  exit 2
fi
file=$(realpath "$1")
shift

build=$root/build/emulate
engine=$root/rooftile/backend/emulated
mkdir -p "$build"
flags=(-std=c++20 -DROOFTILE_EMULATED=1 -gdwarf-4 "-I$root" "-I$engine/include")
kernel=(-O1 -fno-tree-vectorize -ffp-contract=off -Wall -Wextra "-ffile-prefix-map=$root/=")
libraries=(-pthread -ldl)
parts=("$root/rooftile/core/status.cpp")
for part in "$engine"/*.cpp; do
  [[ $mode = checked && $part = */plain.cpp ]] || parts+=("$part")
done
case $mode in
  gdb) kernel=(-O0) ;;
  checked) # instrumented for ThreadSanitizer, and linked with hooks of our own in its place
    kernel+=(-fsanitize=thread -fno-optimize-sibling-calls -fno-tree-sra --param=tsan-distinguish-volatile=1)
    parts+=("$engine"/checked/*.cpp)
    ;;
esac

newer() { # newer THAN PATH...: whether one of them is, or there is no THAN
  [ ! -f "$1" ] || [ -n "$(find "${@:2}" -newer "$1" -print -quit)" ]
}
# A whole program launches by <<<>>>, which is not C++: scripts/cuda_to_cpp.py writes it anew.
program=$build/$(basename "$file" .cu).$mode
source=$file
if grep -q '<<<' "$file"; then
  flags+=(-DROOFTILE_EMULATED_PROGRAM)
  parts+=("$engine/program/runtime.cpp")
  source=$program.cpp
fi
# The engine, each part when it changed. It is not instrumented.
objects=()
jobs=()
for part in "${parts[@]}"; do
  object=$build/$(basename "$part" .cpp).o
  objects+=("$object")
  newer "$object" "$engine" "$part" || continue
  { g++ "${flags[@]}" -O2 -c "$part" -o "$object.new" && mv "$object.new" "$object"; } &
  jobs+=($!)
  [ $((${#jobs[@]} % $(nproc))) -ne 0 ] || wait "${jobs[-1]}"
done
for job in "${jobs[@]}"; do wait "$job"; done

if newer "$program" "$(dirname "$file")" "$root/rooftile" "$root/scripts/emulate.sh"; then
  [ "$source" = "$file" ] || "$root/scripts/cuda_to_cpp.py" "$file" >"$source"
  g++ "${flags[@]}" "${kernel[@]}" -iquote "$(dirname "$file")" -x c++ -c "$source" -o "$program.o"
  g++ -o "$program" "$program.o" "${objects[@]}" "${libraries[@]}"
fi
case $mode in
  gdb) exec gdb -q --args "$program" "$@" ;;
  *) exec "$program" "$@" ;;
esac
