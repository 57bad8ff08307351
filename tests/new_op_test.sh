#!/usr/bin/env bash
# The skeleton op, copied under a new name in a copy of the sources, is an op of check, bench and why with no other file
# touched; and lesson 23, which makes one of it, is true step by step:  new_op_test.sh SOURCE BUILD COMPILER
set -euo pipefail
source=$1
tree=$2/new_op
build=$2/new_op_build
start=$SECONDS
rm -rf "$tree" "$build"
mkdir -p "$tree"
(cd "$source" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - 2>/dev/null) | tar -xf - -C "$tree"
"$tree/scripts/new_op.sh" centre_rows
"$tree/scripts/new_op.sh" --elements soft_sign
"$tree/scripts/new_op.sh" --elements squared_relu
if "$tree/scripts/new_op.sh" centre_rows 2>/dev/null; then echo "new_op.sh overwrote an op"; exit 1; fi
if "$tree/scripts/new_op.sh" Bad-Name 2>/dev/null; then echo "new_op.sh took a bad name"; exit 1; fi
if grep -rniq skeleton "$tree"/rooftile/ops/{centre_rows,soft_sign}; then echo "the copy still says skeleton"; exit 1; fi
# Their own files alone are compiled; what else the command needs is linked from BUILD.
cmake -S "$tree/tests/new_op" -B "$build" -G Ninja "-DCMAKE_CXX_COMPILER=$3" -DCMAKE_CXX_FLAGS=-O0 "-DBUILT=$2" \
  "-DROOFTILE_OPS=centre_rows;soft_sign;squared_relu" >/dev/null
cmake --build "$build" >"$build/log.txt" 2>&1 || { tail -40 "$build/log.txt"; exit 1; }
rooftile=$build/bin/rooftile
ROOFTILE_CPU=$(sed -n 's/^set(plugin rooftile-cpu-\(.*\))/\1/p' "$2/tests/built.cmake")  # the one that the command has
export ROOFTILE_CPU
# Both ways, what follows from the signatures; in one dtype, as nothing here is optimised, and the others in brief.
"$rooftile" check centre_rows soft_sign --dtype f32
"$rooftile" check centre_rows soft_sign --quick
"$rooftile" bench centre_rows --seconds 2 | grep -q centre_rows
"$rooftile" why centre_rows 3x4 f16 | grep -q tile
# Their checks can fail: with the mean left out, and another denominator, they do.
sed -i 's/(at.in\[0\] - mean) \* at.w/at.in[0] * at.w/' "$tree/rooftile/ops/centre_rows/centre_rows.tile.h"
sed -i 's|x / (1 + abs(x))|x / (2 + abs(x))|' "$tree/rooftile/ops/soft_sign/soft_sign.kernels.cpp"
cmake --build "$build" >"$build/log.txt" 2>&1 || { tail -40 "$build/log.txt"; exit 1; }
for op in centre_rows soft_sign; do
  if "$rooftile" check $op --quick >/dev/null 2>&1; then echo "a wrong kernel of $op passed its check"; exit 1; fi
done

# Lesson 23: its patches apply one after another, its checks say what stands below them. Lines alone that name a case or
# count checks, with the instruction set left out; not the emulated device, which is not built here.
lesson=$source/docs/course/23_your_own_kernel.md
export GIT_CEILING_DIRECTORIES=$2  # the copy is no part of this repository: git apply takes its paths as they are
patches=0 shown=0 block="" said=""
without_isa() { sed -E 's/ (avx512|avx2|baseline)\b/ ISA/'; }
while IFS= read -r line; do
  case $block:$line in
    ':```diff' | ':```sh' | ':```text')
      block=${line#'```'}
      : >"$build/patch"
      ;;
    'diff:```')
      (cd "$tree" && git apply "$build/patch") || { echo "lesson 23: patch $((patches + 1)) does not apply"; exit 1; }
      patches=$((patches + 1)) block="" said=""
      ;;
    *:'```') block="" ;;
    diff:*) printf '%s\n' "$line" >>"$build/patch" ;;
    "sh:build/release/bin/rooftile check squared_relu"*)
      [[ $line != *emulated* ]] || continue
      cmake --build "$build" >"$build/log.txt" 2>&1 || { tail -40 "$build/log.txt"; exit 1; }
      read -ra words <<<"${line#build/release/bin/rooftile }"
      said=$("$rooftile" "${words[@]}" 2>&1 | without_isa) || true
      ;;
    'text:squared_relu '*': '* | 'text:'*' checks'*)
      shown=$((shown + 1))
      grep -qxF -- "$(without_isa <<<"$line")" <<<"$said" || { printf 'lesson 23 shows what its check does not say: %s\n%s\n' "$line" "$said"; exit 1; }
      ;;
  esac
done <"$lesson"
[ $patches -eq 5 ] && [ $shown -ge 12 ] || { echo "lesson 23: $patches patches and $shown lines of checks were found"; exit 1; }
echo "new op: from copy to green check, and a wrong one caught, in $((SECONDS - start)) s"
