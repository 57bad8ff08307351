#!/usr/bin/env bash
# Builds the site from the repository's pages: build/site/index.html, which opens without a server and loads nothing from elsewhere.
#   scripts/site.sh [--test [SCREENSHOTS]]     --test: also opens every page in headless Chromium (tests/site_test.py)
# MkDocs and its theme come from PyPI into build/site-venv. The report sample is drawn where the command is built.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/site-venv
if [ ! -x "$venv/bin/mkdocs" ] || [ docs/site/requirements.txt -nt "$venv/installed" ]; then
  scripts/install_packages.sh --python
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r docs/site/requirements.txt
  touch "$venv/installed"
fi
unset ROOFTILE_REPORT_SAMPLE
if [ -x build/release/bin/rooftile ]; then
  build/release/bin/rooftile report --from bench/zen4.json --out build/report_sample.html >/dev/null
  export ROOFTILE_REPORT_SAMPLE=$PWD/build/report_sample.html
else
  echo "site: without the report sample; 'make build' builds the command that draws it"
fi
"$venv/bin/mkdocs" build -q -f docs/site/mkdocs.yml
echo "The site is at $PWD/build/site/index.html"
if [ "${1:-}" = --test ]; then "$venv/bin/python" tests/site_test.py build/site "${@:2}"; fi
