#!/usr/bin/env bash
# Formats every C++ and CUDA source; with --check changes nothing, and fails if something would change.
set -euo pipefail
cd "$(dirname "$0")/.."

clang_format=$(scripts/clang_format.sh)
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' |
  while read -r file; do [ -f "$file" ] && echo "$file"; done)
if [ ${#files[@]} -eq 0 ]; then exit 0; fi
case "${1:-}" in
  --check)
    if ! "$clang_format" --dry-run -Werror "${files[@]}"; then
      echo "format: some files are not formatted; run make format" >&2
      exit 1
    fi
    echo "format: ${#files[@]} files are formatted"
    ;;
  "") "$clang_format" -i "${files[@]}" ;;
  *)
    echo "format.sh: unknown option $1; it takes --check" >&2
    exit 2
    ;;
esac
