#!/usr/bin/env bash
# The debugging session of a page, as it is printed there; without gdb: skipped (77).
#   gdb.sh PROGRAM SOURCE_FOLDER PAGE
set -uo pipefail

program=$1
source=$2
if ! command -v gdb >/dev/null; then
  echo "gdb: skipped, there is none"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
page=$source/$3
# The page's session: what follows (gdb) is typed, the rest is what gdb says.
sed -n '/^```gdb$/,/^```$/p' "$page" | sed '/^```/d' >"$folder/session"
sed -n 's/^(gdb) //p' "$folder/session" >"$folder/commands"
gdb -q -batch -iex "set debuginfod enabled off" -x "$folder/commands" "$program" >"$folder/said" 2>&1
bad=0
if [ "$(wc -l <"$folder/commands")" -lt 10 ]; then
  echo "gdb: the page's session was not found in $page"
  bad=1
fi
# Addresses and folders differ from machine to machine: of each line, what stands before the first of them.
while read -r line; do
  if ! grep -qF -- "${line%%x=0x*}" <(sed "s,\\(at\\|file\\) .*/\\(tests\\|examples\\)/emulated/,\\1 \\2/emulated/," "$folder/said"); then
    echo "gdb: it did not say: $line"
    bad=1
  fi
done < <(grep -v -e '^(gdb)' -e '^$' "$folder/session")
[ "$bad" -eq 0 ] || cat "$folder/said"
echo "gdb: $(wc -l <"$folder/commands") commands, $bad problems"
exit "$bad"
