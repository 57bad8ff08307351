#!/usr/bin/env bash
# What make test-python runs: a virtual environment in build/, the package installed into it as a user would (for this
# machine's instruction set), and its tests on NumPy, PyTorch, JAX (CPU) and Numba. These come from PyPI, or from pip's cache where
# it has them; PyTorch takes 5.4 GB, with PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu less than 1.
#   scripts/test_python.sh [--numpy] [--built FOLDER | --packages]
# --numpy: without the others. --built: the package that a build folder holds (-DROOFTILE_PYTHON=ON), not pip's.
# --packages: fetches what the tests need, and ends.
# ROOFTILE_PYTHON names the Python to use.
set -euo pipefail
cd "$(dirname "$0")/.."

numpy=
built=
packages=
while [ $# -gt 0 ]; do
  case $1 in
    --numpy) numpy=yes ;;
    --packages) packages=yes ;;
    --built)
      built=$(realpath "${2:?test_python.sh: --built needs a build folder}")/python
      shift
      ;;
    *)
      echo "test_python.sh: unknown option $1; it takes --numpy, --built FOLDER and --packages" >&2
      exit 2
      ;;
  esac
  shift
done
if [ -n "$built" ] && [ ! -f "$built/rooftile/__init__.pyi" ]; then
  echo "test_python.sh: $built holds no package; build it with cmake -DROOFTILE_PYTHON=ON" >&2
  exit 2
fi

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
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    if grep -qE 'NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|No matching distribution|Max retries' "$log"; then
      echo "test_python.sh: PyPI could not be reached, or lacks a package (its words are above), and pip's cache does not have it." \
        "NOTHING of the Python package was tested on PyTorch and JAX; make test tests it on NumPy." >&2
    fi
    exit 1
  fi
  echo "   $((SECONDS - begin)) s"
}
# One that was made by a Python that is gone, or left half done, is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  rm -rf "$venv"
  run "virtual environment: $("$python" --version)" "$python" -m venv "$venv"
fi
requirements=python/tests/requirements.txt
modules="numpy, ml_dtypes, pytest, torch, jax, numba"
if [ -n "$numpy" ]; then
  requirements=$PWD/build/python-requirements.txt
  grep -E '^(numpy|ml_dtypes|pytest)' python/tests/requirements.txt >"$requirements"
  modules="numpy, ml_dtypes, pytest"
fi
run "packages: $modules" "$venv/bin/python" -m pip install --prefer-binary -r "$requirements"
[ -z "$packages" ] || exit 0
# Tensors are small, and processes as many as cores: a second thread of PyTorch's would spin where others compute.
export OMP_NUM_THREADS=1
# A test skips what is absent: here nothing is.
run "which can be imported" "$venv/bin/python" -c "import $modules"
if [ -n "$built" ]; then
  export PYTHONPATH=$built PYTHONDONTWRITEBYTECODE=1 PATH=$built/../bin:$PATH
else
  # The emulated device is tested by make test, which builds it anyway.
  run "pip install ." "$venv/bin/python" -m pip install --force-reinstall --no-deps . -C build-dir=build/python \
    -C cmake.define.ROOFTILE_EMULATED=OFF
  unset PYTHONPATH
fi
# The kernels' versions beside the tests: each is mostly one process that computes.
tests=$PWD/build/python-tests.txt
(cd python/tests && exec "$venv/bin/python" -m pytest -q -rs -p no:cacheprovider .) >"$tests" 2>&1 & # where no folder is called rooftile
trap 'kill $! 2>/dev/null || true' EXIT
if [ -n "$built" ] && [ -z "$numpy" ]; then
  run "the kernels' versions in plain Python and NumPy, and faults in them" env ROOFTILE_PYTHON="$venv/bin/python" \
    tests/versions.sh "$built/../bin/rooftile" "$built/../lib/rooftile-baselines"
  run "baselines" env ROOFTILE_PYTHON="$venv/bin/python" tests/baselines.sh "$built/../bin/rooftile" "$PWD"
  run "the kernels' versions in PyTorch and Triton" env ROOFTILE_PYTHON="$venv/bin/python" "$built/../bin/rooftile" check \
    --versions --language torch,triton
  run "lesson 15's in Numba" env ROOFTILE_PYTHON="$venv/bin/python" "$built/../bin/rooftile" check add --versions --language numba
fi
echo "== tests"
code=0
wait $! || code=$?
trap - EXIT
cat "$tests"
exit $code
