#!/usr/bin/env bash
# The folders of rooftile/ops that a change concerns, one a line: those that it touches and, where it touches what all
# ops stand on, a fixed few that use every kind of kernel and that the tests call.
#   scripts/affected.sh [BASE]    the change since BASE (HEAD^), with what is not committed
#   scripts/affected.sh --fixed   the fixed few
# All folders where BASE is not known (a clone of one commit).
set -euo pipefail
cd "$(dirname "$0")/.."

existing() {
  local op
  while read -r op; do
    if [ -e "rooftile/ops/$op/$op.h" ]; then echo "$op"; fi
  done | sort -u
}
fixed() { printf '%s\n' activation blas1 gated gemm image layer_norm rms_norm softmax transpose | existing; }

if [ "${1:-}" = --fixed ]; then
  fixed
  exit
fi
if ! base=$(git rev-parse --verify --quiet "${1:-HEAD^}^{commit}"); then
  [ $# -eq 0 ] || { echo "affected.sh: there is no commit $1" >&2; exit 2; }
  for header in rooftile/ops/*/*.h; do basename "$(dirname "$header")"; done | existing
  exit
fi
{
  git diff --name-only "$base"
  git ls-files --others --exclude-standard
} | while read -r file; do
  case $file in
    *.md | bench/* | docs/* | python/*) ;;  # says nothing about a kernel in C++
    rooftile/ops/*/*)
      op=${file#rooftile/ops/}
      echo "${op%%/*}"
      ;;
    *) fixed ;;
  esac
done | existing
