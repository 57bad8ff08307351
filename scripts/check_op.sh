#!/usr/bin/env bash
# Builds the ops in these folders of rooftile/ops alone, in build/check, and checks them on this CPU and on the emulated
# device: what make check runs.
#   scripts/check_op.sh FOLDER…
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
  echo "check_op.sh: make check OP=rms_norm (or OP=\"rms_norm softmax\"): folders of rooftile/ops" >&2
  exit 2
fi
scripts/install_packages.sh
mkdir -p build
ops=$(IFS=';'; echo "$*")
log=build/check.log
cmake --preset release -B build/check "-DROOFTILE_OPS=$ops" -DROOFTILE_ISAS=native -DROOFTILE_TESTS=OFF -DROOFTILE_EMULATED=ON \
  -DROOFTILE_EMULATED_F16=OFF >"$log" 2>&1 || { cat "$log"; exit 1; }
cmake --build build/check --target rooftile_cli rooftile_cpu_plugins rooftile-emulated
# The folders' own functions, as their headers declare them: a build also holds the folders that they call.
functions=()
for op in "$@"; do
  mapfile -t -O "${#functions[@]}" functions < <(sed -nE 's/^Status ([a-z0-9_]+)\(const Queue.*/\1/p' "rooftile/ops/$op/$op.h" | grep -v '_workspace$')
done
# Both at once: one processor is enough for each.
build/check/bin/rooftile check "${functions[@]}" --device emulated >build/check-emulated.log 2>&1 &
emulated=$!
code=0
build/check/bin/rooftile check "${functions[@]}" || code=$?
wait $emulated || code=$?
cat build/check-emulated.log
exit $code
