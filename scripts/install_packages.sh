#!/usr/bin/env bash
# Installs the packages that rooftile needs and that this machine lacks. Says nothing when all are there.
#   scripts/install_packages.sh [--test] [--python] [--all] [--lint] [--ci]
# --test adds what the tests need, --python what building the Python package needs, --all what those of make test-all need beside it, --lint what the formatter and linter need, --ci what tests use where they find it.
# ROOFTILE_PACKAGES=ready skips the check: for systems that are not Debian's, where you installed them yourself.
set -euo pipefail

if [ "${ROOFTILE_PACKAGES:-}" = ready ]; then exit 0; fi

id=unknown
name="this system"
if [ -r "${ROOFTILE_OS_RELEASE:-/etc/os-release}" ]; then
  # shellcheck disable=SC1090,SC1091
  id=$(. "${ROOFTILE_OS_RELEASE:-/etc/os-release}" && echo "${ID:-unknown} ${ID_LIKE:-}")
  # shellcheck disable=SC1090,SC1091
  name=$(. "${ROOFTILE_OS_RELEASE:-/etc/os-release}" && echo "${PRETTY_NAME:-this system}")
elif command -v uname >/dev/null; then
  name=$(uname -s)
fi

jpeg=libjpeg62-turbo-dev
browser=chromium
case " $id " in
  *" ubuntu "*)
    jpeg=libjpeg-turbo8-dev
    browser= # Ubuntu's chromium is a snap; without it the report's browser test is skipped
    ;;
esac

packages=(g++ cmake ninja-build libcli11-dev libfmt-dev nlohmann-json3-dev libpng-dev "$jpeg" libjs-chart.js)
for option in "$@"; do
  case $option in
    --test) packages+=(ccache libgtest-dev librsvg2-bin pkg-config python3-dev python3-numpy python3-pytest ${browser:+"$browser"}) ;;
    --python) packages+=(python3-dev python3-venv) ;;
    --all) packages+=(valgrind) ;;
    --lint) packages+=(python3-venv shellcheck) ;;
    --ci) packages+=(clang gdb groff-base mandoc) ;;
    *)
      echo "install_packages.sh: unknown option $option; it takes --test, --python, --all, --lint and --ci" >&2
      exit 2
      ;;
  esac
done

fail() {
  echo "rooftile: $1; please install these packages or their equivalents: ${missing[*]}" \
    "(then, where they are not Debian's packages, run again with ROOFTILE_PACKAGES=ready)." >&2
  exit 1
}

missing=("${packages[@]}")
case " $id " in
  *" debian "* | *" ubuntu "*) ;;
  *) fail "$name is neither Debian nor Ubuntu" ;;
esac
for tool in dpkg-query apt-get; do
  command -v "$tool" >/dev/null || fail "$tool is not there"
done

find_missing() {
  missing=()
  local package state
  for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f='${db:Status-Status} ' "$package" 2>/dev/null || true)
    case " $state " in *" installed "*) ;; *) missing+=("$package") ;; esac
  done
}

find_missing
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "packages are missing, and this is neither root nor is there a sudo"
  as_root=(sudo)
fi
echo "rooftile needs packages that are missing here; installing: ${missing[*]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1
}
# Package lists may be absent (fresh containers) or stale (404 on download): then update once and try again.
if ! apt install --no-install-recommends "${missing[@]}"; then
  if ! apt update || ! apt install --no-install-recommends "${missing[@]}"; then
    tail -n 15 "$log" >&2
    fail "apt-get could not install what is missing (its last lines are above)"
  fi
fi
find_missing
if [ ${#missing[@]} -ne 0 ]; then fail "apt-get said it was done, but some packages are still missing"; fi
