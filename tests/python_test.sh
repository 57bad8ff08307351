#!/usr/bin/env bash
# The Python package of the build folder, on NumPy; skipped (77) where no Python from 3.10 on has NumPy and pytest.
#   python_test.sh PACKAGE_FOLDER SOURCE_FOLDER
set -uo pipefail

for python in ${ROOFTILE_PYTHON:+"$ROOFTILE_PYTHON"} python3 /usr/bin/python3; do
  if "$python" -c 'import sys, numpy, pytest; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    cd "$2/python/tests" || exit
    exec env PYTHONPATH="$1" PATH="$1/../bin:$PATH" PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider test_numpy.py test_hostile.py \
      test_testing.py
  fi
done
echo "python_test: skipped, no Python here has NumPy and pytest"
exit 77
