#!/usr/bin/env bash
# Counts on pages what makes them hard to read: sentences over 30 words, words that CONTRIBUTING.md's glossary replaces (the
# field says per, bottleneck, memory-bound, SM), and on lessons tables over 8 rows. A page has none.
#   lint_pages.sh
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

lessons=(README.md docs/course/[0-9]*.md rooftile/ops/*/README.md rooftile/ops/*/lessons/*.md)
guides=(CONTRIBUTING.md docs/block-language.md docs/emulated-device.md docs/performance.md docs/versions.md docs/words.md
  docs/course/README.md python/README.md examples/*/README.md)  # what they list may be long
pages=("${lessons[@]}" "${guides[@]}")
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
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
      gsub(/streaming multiprocessors?/, "sm", low)
      while (match(low, /(^|[^a-z])(peers?|impostors?|side by side|begins? anywhere|on (their|its) way|walk(s|ed|ing)?|(first|second)(-level)? cache|readings|(a|one|each|second) reading|of which|who wants|asks? for|asked for|crew|anyhow|behind (the|its|their) ends?|know (a|the) loop|what binds|binds?|multiprocessors?|is wanted|(sectors?|bytes?|flops?|words?|passes|registers?|vectors?|instructions?|gb) an? (request|byte|element|thread|row|second|lane|pass|cycle|load|pixel|block))([^a-z]|$)/)) {
        print "left-out word:" substr(low, RSTART, RLENGTH)
        low = substr(low, RSTART + RLENGTH - 1)
      }
      n = split(paragraph, all, /[.!?][")*_]*([[:space:]]+|$)/)
      for (i = 1; i <= n; ++i) sentence(all[i])
      paragraph = ""
    }
    /^ *(```|~~~)/ { flush(); fenced = !fenced; next }
    fenced { next }
    /^<!-- kernels: / { listed = 1 }  # one row for each op: as long as it is
    /^<!-- \/kernels/ { listed = 0; rows = 0 }
    /^ *\|/ { flush(); ++rows; next }
    { if (rows > 10 && !listed) print "table of " rows - 2 " rows"; rows = 0 }
    /^ *<!--/ || /^#/ || /^ *$/ || /^!\[/ || /^>/ || /^<\/?(details|summary)/ { flush(); next }
    /^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
    { paragraph = paragraph (paragraph == "" ? "" : " ") $0 }
    END { flush(); if (rows > 10) print "table of " rows - 2 " rows" }
  ' "$page" >"$counts"
  for guide in "${guides[@]}"; do
    [ "$page" != "$guide" ] || sed -i '/^table/d' "$counts"
  done
  long=$(grep -c '^sentence' "$counts") words=$(grep -c '^left-out' "$counts") tables=$(grep -c '^table' "$counts")
  total_long=$((total_long + long)) total_words=$((total_words + words)) total_tables=$((total_tables + tables))
  sed "s|^|$page: |" "$counts"
done
echo "pages: ${#pages[@]}; $total_long sentences over 30 words, $total_words left-out words," \
  "$total_tables tables over 8 rows"
[ $((total_long + total_words + total_tables)) -eq 0 ]
