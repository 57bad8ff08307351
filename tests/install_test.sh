#!/usr/bin/env bash
# Installs the build into a fresh prefix, builds an outside project against it and runs that; then moves the prefix
# and does it again: plug-ins are found beside librooftile.so, wherever that is. By CMake and by pkg-config.
#   install_test.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail

build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unset ROOFTILE_PLUGINS ROOFTILE_CPU LD_LIBRARY_PATH
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }

# Its library and folder lie in a path that has a space after the move: pkg-config escapes it.
by_pkg_config() {
  local prefix=$1 folder=$2 pc flags library
  pc=$(dirname "$(find "$prefix" -name rooftile.pc)")
  eval "flags=($(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs rooftile))"
  library=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir rooftile)
  library=$(realpath "${library//\\/}")
  g++ -std=c++20 "$source/tests/install/main.cpp" "${flags[@]}" -Wl,-rpath,"$library" -o "$folder/by_pkg_config"
  "$folder/by_pkg_config"
  # Loaded by a name relative to a folder that the program then leaves.
  g++ -std=c++20 "$source/tests/install/main.cpp" "${flags[@]}" -o "$folder/relative"
  (cd "$(dirname "$library")" && LD_LIBRARY_PATH=$(basename "$library") "$folder/relative" /)
}

use() {
  local prefix=$1 folder=$2
  cmake -S "$source/tests/install" -B "$folder" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
  grep -q "rooftile_DIR:PATH=$prefix/" "$folder/CMakeCache.txt" ||
    { echo "another rooftile than $prefix was found:"; grep rooftile_DIR "$folder/CMakeCache.txt"; exit 1; }
  cmake --build "$folder" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
  "$folder/uses_rooftile"
  by_pkg_config "$prefix" "$folder"
  "$prefix/bin/rooftile" list >"$work/list.txt"
  grep -q softmax "$work/list.txt" || { echo "rooftile list names no softmax:"; cat "$work/list.txt"; exit 1; }
}

use "$work/first" "$work/build_first"
for file in share/man/man1/rooftile.1 share/bash-completion/completions/rooftile; do
  [ -s "$work/first/$file" ] || { echo "$file was not installed"; exit 1; }
done
mv "$work/first" "$work/moved elsewhere"
use "$work/moved elsewhere" "$work/build_moved"

# The exercises came with it: one on the emulated device and one on the CPU, judged in a folder of the learner's own.
mkdir "$work/learner"
for exercise in vector_add tanh; do
  (cd "$work/learner" && "$work/moved elsewhere/bin/rooftile" exercise start "$exercise" >/dev/null &&
    "$work/moved elsewhere/bin/rooftile" exercise solution "$exercise" >"$(ls exercises/"$exercise".*)" &&
    "$work/moved elsewhere/bin/rooftile" exercise check "$exercise") >"$work/judged.txt" 2>&1 || true
  grep -q "^$exercise solved: " "$work/judged.txt" ||
    { echo "the installed rooftile does not judge $exercise:"; cat "$work/judged.txt"; exit 1; }
done

# No path of the build or of the first prefix may remain in what was installed.
if grep -rlF -e "$work/first" -e "$build" "$work/moved elsewhere"; then
  echo "the files above name the folder they were built in or first installed to"
  exit 1
fi

# Without its plug-ins the library says so in a sentence.
rm "$work/moved elsewhere"/lib*/rooftile/rooftile-cpu-*.so 2>/dev/null ||
  find "$work/moved elsewhere" -name 'rooftile-cpu-*.so' -delete
if "$work/build_moved/uses_rooftile" 2>"$work/error.txt"; then
  echo "without plug-ins the program succeeded"
  exit 1
fi
grep -q "rooftile-cpu-" "$work/error.txt" ||
  { echo "the message without plug-ins does not name what is missing:"; cat "$work/error.txt"; exit 1; }
cat "$work/error.txt"
