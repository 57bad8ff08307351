#!/usr/bin/env bash
# Runs a compiler, and writes the CPU seconds it took, in user and in system mode, beside the object, as OBJECT.seconds;
# tests/compile_budget_test.cpp adds them up. Of an object that ccache had, "cached" stands there.
#   scripts/compile_seconds.sh COMPILER ARGUMENT...
set -uo pipefail

object=""
before=""
for argument in "$@"; do
  if [ "$before" = -o ]; then object=$argument; fi
  before=$argument
done
if [ -z "$object" ]; then exec "$@"; fi

rm -f "$object.seconds" "$object.ccache"
export CCACHE_STATSLOG=$object.ccache
TIMEFORMAT='%3U %3S'
{ time "$@" 2>&3; } 3>&2 2>"$object.seconds"
status=$?
if grep -qs cache_hit "$object.ccache"; then echo cached >"$object.seconds"; fi
rm -f "$object.ccache"
if [ "$status" -ne 0 ]; then rm -f "$object.seconds"; fi
exit "$status"
