#!/usr/bin/env bash
# Prints the path of clang-format 14.0.6, Debian 12's version, and fetches it from PyPI into build/ where the
# machine has another one: versions differ in what they do to the same file, so one is pinned.
set -euo pipefail
cd "$(dirname "$0")/.."

version=14.0.6
is_right() { "$1" --version 2>/dev/null | grep -q "version $version"; }

if is_right clang-format; then
  command -v clang-format
  exit 0
fi
venv=$PWD/build/clang-format-$version
if ! is_right "$venv/bin/clang-format"; then
  echo "rooftile: fetching clang-format $version from PyPI into build/" >&2
  rm -rf "$venv"
  mkdir -p build
  if ! python3 -m venv "$venv" >&2 || ! "$venv/bin/pip" install -q --disable-pip-version-check "clang-format==$version" >&2; then
    echo "rooftile: clang-format $version could be had neither from PATH nor from PyPI (needs python3-venv and a network)." >&2
    exit 1
  fi
fi
echo "$venv/bin/clang-format"
