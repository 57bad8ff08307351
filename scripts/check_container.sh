#!/usr/bin/env bash
# Checks Dockerfile and devcontainer without Docker: what they copy, call and name is there. Continuous integration builds neither.
#   check_container.sh [FOLDER]
set -uo pipefail
cd "${1:-$(dirname "$0")/..}" || exit 1

bad=0
complain() {
  echo "container: $1"
  bad=$((bad + 1))
}
while read -r file; do
  [ -f "$file" ] || complain "Dockerfile copies $file, which is not there"
done < <(sed -nE 's/^COPY ([^ ]+) .*/\1/p' Dockerfile)
grep -q '^FROM \${IMAGE}$' Dockerfile && grep -q '^ARG IMAGE=debian:12$' Dockerfile || complain "Dockerfile begins from no ARG IMAGE=debian:12"
grep -q '/tmp/install_packages.sh' Dockerfile || complain "Dockerfile does not run install_packages.sh"

json=.devcontainer/devcontainer.json
if ! named=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["build"]["dockerfile"])' "$json" 2>/dev/null); then
  complain "$json is no JSON with build.dockerfile"
elif [ ! -f ".devcontainer/$named" ]; then
  complain "$json names $named, which is not there"
fi
# Packages are known to apt, where this machine has package lists.
if command -v apt-cache >/dev/null && apt-cache show g++ >/dev/null 2>&1; then
  for package in $(sed -nE 's/.*--no-install-recommends ([^\\]*)\\?$/\1/p' Dockerfile); do
    apt-cache show "$package" >/dev/null 2>&1 || complain "apt knows no package $package"
  done
fi
echo "container: $bad problems"
[ "$bad" -eq 0 ]
