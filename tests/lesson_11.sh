#!/usr/bin/env bash
# The kernels in docs/course/11_triton.py compute what they should; without Python: skipped (77).
#   lesson_11.sh SOURCE_FOLDER
set -uo pipefail

python=${ROOFTILE_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  echo "lesson_11: skipped, there is no $python"
  exit 77
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" "$1/tests/lesson_11_test.py" "$1"
