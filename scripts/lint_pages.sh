#!/usr/bin/env bash
# Counts on lesson pages what makes them hard to read: sentences over 30 words, words that CONTRIBUTING.md's glossary
# replaces, tables over 8 rows; and words of the whole page. A page that was rewritten has none: there it is a problem.
#   lint_pages.sh [--all]     --all: the findings of every page, not of the rewritten ones alone
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

# Pages that were rewritten: this list grows until it is all of them.
rewritten=(
  README.md
  docs/course/01_first_report.md
  docs/course/03_what_a_gpu_is.md
  docs/course/06_a_whole_cuda_program.md
  docs/course/08_swap_and_aliasing.md
  docs/course/09_scal_axpby.md
  docs/course/10_vector_addition.md
  docs/course/19_coalescing.md
  rooftile/ops/softmax/README.md
  rooftile/ops/transpose/README.md
)

pages=(README.md docs/course/[0-9]*.md rooftile/ops/*/README.md rooftile/ops/*/lessons/*.md)
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
problems=0
total_long=0 total_words=0 total_tables=0
for page in "${pages[@]}"; do
  [ -f "$page" ] || continue
  # Findings as "kind: text"; code, tables, markers, headings and links' targets are no sentences.
  awk '
    function sentence(text,   n, parts) {
      n = split(text, parts, /[[:space:]]+/)
      if (n > 30) print "sentence of " n " words: " substr(text, 1, 90) "…"
    }
    function flush(   n, i, all, low) {
      if (paragraph == "") return
      gsub(/\]\([^)]*\)/, "]", paragraph)
      gsub(/`[^`]*`/, "code", paragraph)
      low = tolower(paragraph)
      while (match(low, /(^|[^a-z])(peers?|impostors?|side by side|begins? anywhere|on (their|its) way|walk(s|ed|ing)?|(first|second)(-level)? cache|readings?|of which|who wants|asks? for|asked for|crew|anyhow|behind (the|its|their) ends?)([^a-z]|$)/)) {
        print "left-out word:" substr(low, RSTART, RLENGTH)
        low = substr(low, RSTART + RLENGTH - 1)
      }
      n = split(paragraph, all, /[.!?][")*_]*([[:space:]]+|$)/)
      for (i = 1; i <= n; ++i) sentence(all[i])
      paragraph = ""
    }
    /^ *(```|~~~)/ { flush(); fenced = !fenced; next }
    fenced { next }
    /^ *\|/ { flush(); ++rows; next }
    { if (rows > 10) print "table of " rows - 2 " rows"; rows = 0 }
    /^ *<!--/ || /^#/ || /^ *$/ || /^!\[/ || /^<\/?(details|summary)/ { flush(); next }
    /^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
    { paragraph = paragraph (paragraph == "" ? "" : " ") $0 }
    END { flush(); if (rows > 10) print "table of " rows - 2 " rows" }
  ' "$page" >"$counts"
  long=$(grep -c '^sentence' "$counts") words=$(grep -c '^left-out' "$counts") tables=$(grep -c '^table' "$counts")
  total_long=$((total_long + long)) total_words=$((total_words + words)) total_tables=$((total_tables + tables))
  is_rewritten=0
  for one in "${rewritten[@]}"; do [ "$one" = "$page" ] && is_rewritten=1; done
  if [ "$is_rewritten" -eq 1 ] || [ "${1:-}" = --all ]; then sed "s|^|$page: |" "$counts"; fi
  [ "$is_rewritten" -eq 1 ] && problems=$((problems + long + words + tables))
done
echo "lesson pages: ${#rewritten[@]} rewritten; in all $total_long sentences over 30 words, $total_words left-out words," \
  "$total_tables tables over 8 rows"
[ "$problems" -eq 0 ]
