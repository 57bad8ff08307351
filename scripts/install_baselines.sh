#!/usr/bin/env bash
# Installs what `rooftile bench` can be compared with – PyTorch, OpenCV and oneDNN – into build/baselines-venv. Nothing in
# rooftile needs it; it takes about 6 GB of disk with --torch (PyTorch's wheel for Linux brings CUDA's libraries along).
#   scripts/install_baselines.sh            oneDNN and OpenCV, 0.4 GB
#   scripts/install_baselines.sh --torch    PyTorch as well, and safetensors for lesson 57
#   scripts/install_baselines.sh --numba    Numba as well, for lesson 15
#   scripts/install_baselines.sh --cute     headers of CuTe alone, and of CUDA for a machine without nvcc, 12 MB, into build/cute,
#                                       for lessons 14 and 45
#   scripts/install_baselines.sh --gpu      for a machine with a GPU whose python3 has PyTorch and Triton: Liger, 5 MB, into
#                                       build/gpu-baselines, where scripts/bench_gpu.sh looks
# Then configure again, so that the oneDNN baseline is built, and tell the bench which Python to use:
#   cmake --preset release && cmake --build --preset release
#   ROOFTILE_PYTHON=build/baselines-venv/bin/python build/release/bin/rooftile bench
set -euo pipefail
cd "$(dirname "$0")/.."

# make_venv FOLDER: a virtual environment there, if there is none.
make_venv() {
  [ ! -x "$1/bin/pip" ] || return 0
  mkdir -p "${1%/*}"
  if ! python3 -m venv "$1" >&2; then
    echo "install_baselines.sh: python3 cannot make a virtual environment; on Debian, install python3-venv" >&2
    exit 1
  fi
}

# oneDNN: the last CPU build with OpenMP, and its headers (later packages of that name are SYCL builds).
packages=(onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
  numpy==2.4.6 opencv-python-headless==5.0.0.93)
case "${1:-}" in
  --torch) packages+=(torch==2.15.0 safetensors==0.8.0) ;;
  --numba) packages+=(numba==0.68.1) ;;
  --gpu)
    # Pure Python. QuACK is left out: it needs nvidia-cutlass-dsl, over 90 MB of it for each version of Python. Where
    # python3 has both, the bench finds it.
    python3 -m pip install --disable-pip-version-check --no-deps --no-compile --upgrade --target build/gpu-baselines \
      liger-kernel==0.8.5 packaging==26.3
    echo "Liger is in build/gpu-baselines; for a bench by hand: PYTHONPATH=$PWD/build/gpu-baselines"
    exit 0
    ;;
  --cute)
    # CUTLASS 4.2's headers hold CuTe. The other three are CUDA 13.0's, which CuTe includes.
    make_venv build/cute/venv
    build/cute/venv/bin/pip install -q --disable-pip-version-check --no-deps --no-compile --upgrade --target build/cute/packages \
      nvidia-cutlass==4.2.0.0 nvidia-cuda-runtime==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88
    ln -sfn packages/cutlass_library/source/include build/cute/include
    ln -sfn packages/nvidia/cu13/include build/cute/cuda
    echo "-std=c++17 -isystem build/cute/include -isystem build/cute/cuda -isystem build/cute/cuda/cccl" >build/cute/flags
    echo "CuTe is in build/cute: g++ @build/cute/flags …, or nvcc -std=c++17 -isystem build/cute/include …"
    exit 0
    ;;
  "") ;;
  *)
    echo "install_baselines.sh: unknown option $1; it takes --torch, --numba, --cute or --gpu" >&2
    exit 2
    ;;
esac

venv=build/baselines-venv
make_venv "$venv"
"$venv/bin/pip" install --disable-pip-version-check "${packages[@]}" || {
  echo "install_baselines.sh: pip could not install ${packages[*]} (its last lines are above)" >&2
  exit 1
}
echo "Baselines are in $venv. Configure and build again, then:"
echo "  ROOFTILE_PYTHON=$venv/bin/python build/release/bin/rooftile bench"
