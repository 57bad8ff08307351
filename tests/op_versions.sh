#!/usr/bin/env bash
# The kernels in rooftile/ops/*/versions.py compute what they should; without Python: skipped (77).
#   op_versions.sh SOURCE_FOLDER
set -uo pipefail

python=${ROOFTILE_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  echo "op_versions: skipped, there is no $python"
  exit 77
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" "$1/tests/op_versions_test.py" "$1"
