#!/usr/bin/env bash
# Installs what `rooftile bench` can be compared with – PyTorch, OpenCV and oneDNN – into build/peers-venv. Nothing in
# rooftile needs it; it takes about 6 GB of disk with --torch (PyTorch's wheel for Linux brings CUDA's libraries along).
#   scripts/install_peers.sh            oneDNN and OpenCV, 0.4 GB
#   scripts/install_peers.sh --torch    PyTorch as well
# Then configure again, so that the oneDNN peer is built, and tell the bench which Python to use:
#   cmake --preset release && cmake --build --preset release
#   ROOFTILE_PYTHON=build/peers-venv/bin/python build/release/bin/rooftile bench
set -euo pipefail
cd "$(dirname "$0")/.."

# oneDNN: the last CPU build with OpenMP, and its headers (later packages of that name are SYCL builds).
packages=(onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
  numpy==2.4.6 opencv-python-headless==5.0.0.93)
case "${1:-}" in
  --torch) packages+=(torch==2.15.0) ;;
  "") ;;
  *)
    echo "install_peers.sh: unknown option $1; it takes --torch" >&2
    exit 2
    ;;
esac

venv=build/peers-venv
if ! [ -x "$venv/bin/pip" ]; then
  mkdir -p build
  if ! python3 -m venv "$venv" >&2; then
    echo "install_peers.sh: python3 cannot make a virtual environment; on Debian, install python3-venv" >&2
    exit 1
  fi
fi
"$venv/bin/pip" install --disable-pip-version-check "${packages[@]}" || {
  echo "install_peers.sh: pip could not install ${packages[*]} (its last lines are above)" >&2
  exit 1
}
echo "Peers are in $venv. Configure and build again, then:"
echo "  ROOFTILE_PYTHON=$venv/bin/python build/release/bin/rooftile bench"
