#!/usr/bin/env bash
# What the shared libraries show to the outside: librooftile.so only names of rooftile, each plug-in one function, and
# none a symbol that the dynamic linker merges across libraries (STB_GNU_UNIQUE: such a copy, compiled for AVX-512,
# would be used by baseline code too).
#   symbols.sh librooftile.so PLUGIN…
set -uo pipefail

library=$1
shift
bad=0
complain() {
  echo "$1"
  bad=$((bad + 1))
}
names_of() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }'; }

soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = librooftile.so.0 ] || complain "$library: SONAME is '$soname', not librooftile.so.0"

# Functions, then tables and guards, of namespace rooftile; the C face's begin with rooftile_.
allowed='^(_ZN[VK]*8rooftile|_ZT[VIST]N?8rooftile|_ZGVN8rooftile|rooftile_)'
names=$(names_of "$library")
strangers=$(grep -vE "$allowed" <<<"$names")
[ -z "$strangers" ] || complain "$library exports what is not rooftile's:
$(c++filt <<<"$strangers")"
grep -qE '^_ZN8rooftile7softmax' <<<"$names" || complain "$library does not export rooftile::softmax"
grep -qE '^_ZN8rooftile5Queue3cpu' <<<"$names" || complain "$library does not export rooftile::Queue::cpu"

if [ $# -eq 0 ]; then complain "no plug-ins were given"; fi
for plugin in "$@"; do
  names=$(names_of "$plugin")
  [ "$names" = rooftile_plugin ] || complain "$plugin must export rooftile_plugin alone, and exports:
$(c++filt <<<"$names")"
done
for file in "$library" "$@"; do
  unique=$(nm -D --defined-only "$file" | awk '$2 == "u"')
  [ -z "$unique" ] || complain "$file has unique symbols:
$(c++filt <<<"$unique")"
done
echo "symbols: $(($# + 1)) libraries, $bad problems"
[ "$bad" -eq 0 ]
