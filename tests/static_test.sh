#!/usr/bin/env bash
# Builds librooftile.a, which holds the CPU's plug-ins, installs it, and uses it by CMake and by pkg-config: programs
# that need no file of rooftile's when they run. Of the kernels softmax alone, so that it takes half a minute.
#   static_test.sh SOURCE_FOLDER
set -euo pipefail

source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset ROOFTILE_PLUGINS ROOFTILE_CPU LD_LIBRARY_PATH
logged() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }

mkdir -p "$work/source/rooftile/ops"
cp -r "$source/CMakeLists.txt" "$source/cmake" "$source/scripts" "$work/source"
for part in "$source"/rooftile/*; do
  if [ "$part" != "$source/rooftile/ops" ]; then cp -r "$part" "$work/source/rooftile"; fi
done
cp -r "$source/rooftile/ops/softmax" "$work/source/rooftile/ops"
logged cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
  "-DROOFTILE_ISAS=baseline;avx2" -DROOFTILE_EMULATED=OFF -DROOFTILE_TESTS=OFF
logged cmake --build "$work/build"
logged cmake --install "$work/build" --prefix "$work/first"
rm -rf "$work/build"
mv "$work/first" "$work/prefix"

archive=$(find "$work/prefix" -name librooftile.a)
for isa in baseline avx2; do
  # Else the linker would take one instruction set's copy of a function for all.
  shown=$(cd "$work" && ar x "$archive" "rooftile-cpu-$isa.o" && nm --defined-only --extern-only "rooftile-cpu-$isa.o" | awk '{print $3}')
  [ "$shown" = "rooftile_plugin_cpu_$isa" ] ||
    { echo "rooftile-cpu-$isa.o must show rooftile_plugin_cpu_$isa alone, shows:"; head <<<"$shown"; exit 1; }
done

logged cmake -S "$source/tests/install" -B "$work/outside" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
logged cmake --build "$work/outside"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name rooftile.pc)")
read -ra flags <<<"$(pkg-config --static --cflags --libs rooftile)"
g++ -std=c++20 "$source/tests/install/main.cpp" "${flags[@]}" -o "$work/outside/by_pkg_config"
rm -rf "$work/prefix"
for program in uses_rooftile by_pkg_config; do
  for isa in baseline avx2; do
    if [ $isa = avx2 ] && ! grep -q avx2 /proc/cpuinfo; then continue; fi
    ROOFTILE_CPU=$isa "$work/outside/$program" / | tee "$work/out"
    grep -q "computed by $isa" "$work/out"
  done
done
