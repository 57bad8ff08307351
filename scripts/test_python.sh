#!/usr/bin/env bash
# What make test-python runs: a virtual environment in build/, the package installed into it as a user would (for this
# machine's instruction set), and its tests on NumPy, PyTorch and JAX (CPU), which come from PyPI.
#   scripts/test_python.sh [--numpy]     --numpy: without PyTorch (5.4 GB) and JAX
# ROOFTILE_PYTHON names the Python to use; the packages it needs are installed by pip.
set -euo pipefail
cd "$(dirname "$0")/.."

frameworks=(torch jax)
case "${1:-}" in
  --numpy) frameworks=() ;;
  "") ;;
  *)
    echo "test_python.sh: unknown option $1; it takes --numpy" >&2
    exit 2
    ;;
esac

scripts/install_packages.sh --python
python=${ROOFTILE_PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  { echo "test_python.sh: $("$python" --version) is too old; name one from 3.10 on by ROOFTILE_PYTHON" >&2; exit 1; }

venv=$PWD/build/python-venv
log=$PWD/build/python.log
mkdir -p build
# run SENTENCE COMMAND…: says what it does and how long it took; shows what was said only where it failed.
run() {
  local begin=$SECONDS
  echo "== $1"
  shift
  "$@" >"$log" 2>&1 || { tail -n 60 "$log"; exit 1; }
  echo "   $((SECONDS - begin)) s"
}
[ -x "$venv/bin/python" ] || run "virtual environment" "$python" -m venv "$venv"
run "packages: numpy ml_dtypes pytest ${frameworks[*]}" "$venv/bin/pip" install numpy ml_dtypes pytest "${frameworks[@]}"
# The emulated device is tested by make test, which builds it anyway.
run "pip install ." "$venv/bin/pip" install --force-reinstall --no-deps . -C build-dir=build/python \
  -C cmake.define.ROOFTILE_ISAS=native -C cmake.define.ROOFTILE_EMULATED=OFF
cd python/tests # where no folder is called rooftile
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider .
