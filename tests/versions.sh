#!/usr/bin/env bash
# `rooftile check --versions` accepts the right versions in plain Python and NumPy and rejects wrong ones; without NumPy:
# skipped (77).
#   versions.sh ROOFTILE VERSIONS_FOLDER [--quick]    --quick: two cases of each function, where continuous integration, on
#                                                     the newest NumPy, and make test-all go through all of them
set -uo pipefail

rooftile=$1
python=${ROOFTILE_PYTHON:-python3}
if ! "$python" -c "import numpy" 2>/dev/null; then
  echo "versions: skipped, $python has no NumPy"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$2"/. "$work"
export ROOFTILE_PYTHON=$python ROOFTILE_BASELINES=$work
failed=0

# expect WHAT EXIT_CODE TEXT [OPTION…]: of a check of $functions.
functions="add axpby"
expect() {
  # shellcheck disable=SC2086  # no name: all
  "$rooftile" check $functions --versions --language plain,numpy "${@:4}" >"$work/out" 2>&1
  local code=$?
  if [ $code != "$2" ] || ! grep -qE "$3" "$work/out"; then
    echo "versions: $1: exit code $code, must be $2 with \"$3\""
    cat "$work/out"
    failed=1
  fi
}
# edit WHAT SED: the versions as they are but for one edit, which must change them.
edit() {
  sed "$2" "$original" >"$work/blas1/versions.py"
  ! cmp -s "$original" "$work/blas1/versions.py" || { echo "versions: $1 edits nothing"; failed=1; }
}
original=$2/blas1/versions.py

expect "as they are" 0 'axpby_plain_nan .*trap, rejected by'
expect "cases that are not accepted" 0 'add_numpy .*113 bf16'
edit "a wrong sum" 's/^    return x + y$/    return x - y/'
expect "a wrong sum" 1 'add_numpy .*FAILED'
edit "one element too many" 's/^    z = \[0.0\] \* len(x)$/    z = [1.0] * (len(x) + 1)/'
expect "one element too many" 1 'add_plain, .*elements where'
edit "a version that ends its process" 's/^    z = \[0.0\] \* len(x)$/    import os; os._exit(3)/'
expect "a version that ends its process" 1 'add_plain, .*the Python process ended' --quick
edit "a trap that is right" 's/^    return \[alpha \* a + beta \* b for a, b in zip(x, y)\]$/    return axpby_plain(x, y, alpha, beta)/'
expect "a trap that is right" 1 'FAILED: trap, not rejected'
cp "$original" "$work/blas1/versions.py"
# What runs on a GPU alone is left out in words, with or without its library.
for language in cutile cute; do
  "$rooftile" check copy --versions --language $language >"$work/out" 2>&1
  code=$?
  if [ $code != 2 ] || ! grep -q "left out: they run on a GPU alone" "$work/out"; then
    echo "versions: $language without a GPU: exit code $code, must be 2 with a sentence"
    cat "$work/out"
    failed=1
  fi
done
functions=""
expect "every function" 0 'versions and [0-9]+ traps, all ok' "${@:3}"
[ $failed = 0 ] && echo "versions: ok"
exit $failed
