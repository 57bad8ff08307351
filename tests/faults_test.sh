#!/usr/bin/env bash
# What goes wrong outside the command: each fault is one sentence on standard error that names it, the exit code that
# --help promises, and no file left behind. A crash, or a sanitizer's report, is more than one line.
#   faults_test.sh ROOFTILE CXX SOURCE_FOLDER
set -uo pipefail

rooftile=$1
cxx=$2
source=$3
unset ROOFTILE_CPU ROOFTILE_PLUGINS
work=$(mktemp -d)
mounted=
cleanup() {
  [ -z "$mounted" ] || umount "$mounted"
  rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/here" "$work/log"
cd "$work/here" || exit 1
bad=0
count=0
complain() {
  echo "faults: $1"
  bad=$((bad + 1))
}
# judge CODE PATTERN WHAT: the exit code, one sentence that matches, and the folder as it was.
judge() {
  local expected=$1 pattern=$2 what=$3
  count=$((count + 1))
  [ "$code" -eq "$expected" ] || complain "$what: exit code $code, expected $expected: $(head -c 400 "$work/log/err")"
  grep -qE '::|Options|ROOFTILE_(EMULATED|CUDA|ISAS)' "$work/log/err" &&
    complain "$what: names of C++ or CMake in the sentence: $(head -c 400 "$work/log/err")"
  [ "$(wc -l <"$work/log/err")" -eq 1 ] || complain "$what: not one line on standard error: $(head -c 800 "$work/log/err")"
  grep -qE "^rooftile: .*($pattern)" "$work/log/err" || complain "$what: the sentence lacks /$pattern/: $(head -c 400 "$work/log/err")"
  find . -type f -printf '%p %s\n' | sort >"$work/log/after"
  cmp -s "$work/log/before" "$work/log/after" || complain "$what: files changed: $(diff "$work/log/before" "$work/log/after" | head -5)"
}
# fault CODE PATTERN WORDS…
fault() {
  local expected=$1 pattern=$2
  shift 2
  find . -type f -printf '%p %s\n' | sort >"$work/log/before"
  "$rooftile" "$@" >"$work/log/out" 2>"$work/log/err"
  code=$?
  judge "$expected" "$pattern" "rooftile $*"
}

sample=$source/tests/data/report_sample.json
echo "what was there" >old.html

# Words.
fault 2 'command is missing'
fault 2 'no command "chekc".*did you mean check' chekc
fault 2 'no command "bnech" \(did you mean bench\?\)' help bnech
fault 2 'no command "nix"' help image nix
fault 2 'no option "--bogus"; see rooftile check --help' check --bogus
fault 2 'no option "--jsno" \(did you mean --json\?\)' bench --jsno=a.json
fault 2 'no option "--shaep" \(did you mean --shape\?\)' trace --shaep 3x4
fault 2 'no dtype "fp32" \(did you mean f32\?\)' why softmax 2x3 fp32
fault 2 'no dtype "float32" \(did you mean f32\?\)' check --dtype float32
fault 2 'no dtype "half" \(did you mean f16\?\)' bench --dtype half
fault 2 'no dtype "bfloat16" \(did you mean bf16\?\)' trace softmax --dtype bfloat16
fault 2 'no dtype "uint8" \(did you mean u8\?\)' asm copy --dtype uint8
fault 2 'no instruction set "avx51" \(did you mean avx512\?\)' check --isa avx51
fault 2 'no parameter "scal" \(did you mean scale\?\)' why softmax 2x3 f32 --set scal=1
fault 2 'no layout "padded_row" \(did you mean padded_rows\?\)' why softmax 2x3 f32 --layout padded_row
fault 2 'no op "sofmax".*did you mean softmax' why sofmax 2x3 f32
fault 2 'no op ""' check ""
fault 2 'no op "nix"' check softmax nix
fault 2 'no op "nix"' bench nix
fault 2 'no op "nix"' list nix
fault 2 'no variant "nix"' check softmax --variant nix
fault 2 'no variant "nix"' bench softmax --variant nix
fault 2 "01_one_element is a rung of the GPU's ladder: --device emulated" check add --variant 01_one_element
fault 2 "01_one_element is a rung of the GPU's ladder: --device emulated" bench add --variant 01_one_element
fault 2 "01_scalar is a rung of the CPU's ladder, which --device emulated" check add --variant 01_scalar --device emulated
fault 2 'no dtype "f31"' check --dtype f31
fault 2 'OP is required' trace
fault 2 'no op "sofmax".*did you mean softmax' trace sofmax
fault 2 'no variant "nix"' trace softmax --variant nix
fault 2 'shape "3x"' trace softmax --shape 3x
fault 2 'takes rows x columns' trace softmax --shape 3
fault 2 'has no backward function' trace copy --backward
fault 2 'no dtype "f31"' trace softmax --dtype f31
fault 2 'no op "nix"' profile nix
fault 2 'no variant "nix"' profile softmax --variant nix
fault 3 'nix.csv: cannot be read' profile softmax --from nix.csv
fault 3 'old.html: holds no table' profile softmax --from old.html
fault 3 '/nowhere/ncu: no such program' profile softmax --tools /nowhere
fault 2 '\-\-run excludes|excludes' profile softmax --run --from old.html
fault 2 'no op "nix"' asm nix
fault 2 'no variant "nix"' asm softmax --variant nix
fault 2 'no device "gpu"' asm softmax --device gpu
fault 2 'no regular expression' asm softmax --kernel '('
fault 2 'add --device cuda' asm softmax --ptx
fault 2 'no function of it fits' asm softmax --kernel nix
# A program in ncu's place that may not read the counters.
mkdir "$work/tools"
cat >"$work/tools/ncu" <<'NCU'
#!/bin/sh
echo "==PROF== Connected to process 1"
echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access the counters"
exit 1
NCU
chmod +x "$work/tools/ncu"
fault 3 'ncu measured nothing \(exit code 1\): ERR_NVGPUCTRPERM - The user' profile softmax --tools "$work/tools"
fault 2 'no dtype "f31"' bench --dtype f31
fault 2 'no dtype "f31"' why softmax 2x3 f31
fault 1 'x is 2x3 u8' why softmax 2x3 u8
fault 1 'rgb is 2x3x3 f32, must be one of u8' why rgb_to_gray 2x3 f32
fault 1 'x is .* i32' asm softmax --dtype i32
fault 1 "the ladder's rungs take f32, x is bf16" asm softmax --variant 01_scalar --dtype bf16
fault 2 'no instruction set "sse9"' check --isa sse9
fault 2 'no instruction set "sse9"' why softmax 2x3 f32 --isa sse9
fault 2 'no parameter "nix"' why softmax 2x3 f32 --set nix=1
fault 2 '"one" is no number' why softmax 2x3 f32 --set scale=one
fault 2 '"inf" is no number' why softmax 2x3 f32 --set scale=inf
fault 2 'no layout "nix"' why softmax 2x3 f32 --layout nix
fault 2 'random' check --random -5
fault 2 'random' check --random 99999999999999999999
fault 2 'seed' check --seed -1
fault 2 'threads' bench --threads 0
fault 2 'threads 4096: this process may run on [0-9]+ CPUs?; name 1' bench copy --threads 4096
fault 2 'threads are the CPU' bench copy --threads 1 --device emulated
fault 2 'no baseline "nix" is here; there (is|are)' bench copy --baselines nix
fault 2 'json: an empty value' bench copy --json ""
fault 2 'csv: an empty value' bench copy --csv ""
fault 2 'json: ' list --json=
fault 2 'out: an empty value' report --out ""
fault 2 'dtype: an empty value' check --dtype ""
fault 2 'no case fits' bench rgb_to_gray --dtype f32
fault 2 'takes i32' check softmax --dtype i32
fault 2 'architecture' trace copy --architecture 77
fault 3 'absent.json' bench copy --compare absent.json
fault 3 'absent.json' bench --merge absent.json --json merged.json
fault 1 'x is .* i32' trace softmax --dtype i32
fault 1 'x is .* i32' profile softmax --dtype i32
fault 2 'standard output' check --json - --csv -
fault 2 'photo.*from|from.*photo' report --photo a.png --from b.json
fault 2 'SHAPE' why softmax
fault 2 'line' list $'two\nlines'

# Shapes.
for command in "why softmax SHAPE f32" "bench softmax --shape SHAPE"; do
  while read -r shape pattern; do
    # shellcheck disable=SC2086
    fault 2 "$pattern" ${command/SHAPE/$shape}
  done <<'SHAPES'
3x a size is missing
x a size is missing
x3 a size is missing
3xx4 a size is missing
3x4x a size is missing
-1x4 negative
3x-4 negative
3.5x4 no size
3x4a no size
1e3x4 no size
99999999999999999999 beyond
9223372036854775808x1 beyond
1x2x3x4x5x6x7x8x9x10x11x12x13x14x15x16x17 more than 16 sizes
5 rows x columns
SHAPES
done
fault 2 'size is missing' why softmax "" f32
fault 2 'no size' why softmax " 3x4" f32
fault 2 '2\^62' why softmax 9223372036854775807x9223372036854775807 f32
fault 2 '2\^62' why softmax 4294967296x4294967296 f32
fault 3 'TiB.*available|PiB.*available|EiB.*available' bench softmax --shape 4294967296x4294967296
fault 3 'TiB.*available' bench softmax --shape 1099511627776x4 --dtype f32

# Places that cannot be written. A folder's permissions do not bind root; a path below a file binds everybody.
fault 3 'old.html.*ot a (folder|directory)' report --from "$sample" --out old.html/report.html
fault 3 'No such file' report --from "$sample" --out missing/report.html
fault 3 'a folder' report --from "$sample" --out .
fault 3 'proc' report --from "$sample" --out /proc/report.html
fault 3 'No such file' check --json missing/check.json
fault 3 'No such file' bench --csv missing/bench.csv
fault 3 'old.html' image gray red.png old.html/gray.png
if [ "$(id -u)" -ne 0 ]; then
  mkdir closed
  chmod 555 closed
  fault 3 'Permission denied' report --from "$sample" --out closed/report.html
fi

# A full disk: the device for it, a limit on file sizes, and a small file system where one can be mounted.
fault 3 'No space left' report --from "$sample" --out /dev/full
fault 3 'No space left' list --json /dev/full
fault 3 'No space left' why softmax 2x3 f32 --json /dev/full
find . -type f -printf '%p %s\n' | sort >"$work/log/before"
for words in "list" "report --from $sample --out -" "--help" "--version" "devices --no-measure"; do
  # shellcheck disable=SC2086
  "$rooftile" $words >/dev/full 2>"$work/log/err"
  code=$?
  judge 3 'standard output.*No space left' "rooftile $words >/dev/full"
  # shellcheck disable=SC2086
  "$rooftile" $words >&- 2>"$work/log/err"
  code=$?
  judge 3 'standard output.*Bad file descriptor' "rooftile $words, with standard output closed"
done
(ulimit -f 8 && exec "$rooftile" report --from "$sample" --out old.html) >"$work/log/out" 2>"$work/log/err"
code=$?
judge 3 'old.html.*File too large' "a page larger than the limit on file sizes"
mkdir small
if mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
  mounted=$work/here/small
  echo "what was there" >small/old.html
  fault 3 'small/old.html.*No space left' report --from "$sample" --out small/old.html
  fault 3 'small/new.html.*No space left' report --from "$sample" --out small/new.html
  umount small && mounted=
else
  echo "faults: no file system can be mounted here: /dev/full and a size limit stood in for a full disk"
fi
grep -q "what was there" old.html || complain "old.html was changed by a command that failed"

# Plug-ins.
fault_in() { # FOLDER CODE PATTERN WORDS…
  local folder=$1
  shift
  ROOFTILE_PLUGINS=$folder fault "$@"
}
mkdir empty text older foreign quiet
fault_in empty 3 'empty/rooftile-cpu-.*no such plug-in' list
fault_in "$work/nowhere" 3 'nowhere/rooftile-cpu-.*no such plug-in' why softmax 2x3 f32
isa=$("$rooftile" devices --no-measure --json - | sed -n 's/^ *"isa": "\(.*\)",$/\1/p' | head -n 1)
[ -n "$isa" ] || complain "devices --json - names no isa"
plugin=rooftile-cpu-$isa.so
echo "a text file" >text/$plugin
compile() { "$cxx" -shared -fPIC -o "$1/$plugin" -x c++ - || complain "$1/$plugin did not compile"; }
compile foreign <<<'extern "C" int something_else() { return 1; }'
compile quiet <<<'extern "C" const void* rooftile_plugin() { return nullptr; }'
compile older <<E2
struct Plugin { int version; const char* backend; int count; const void* entries; };
static const Plugin plugin{99, "cpu-$isa", 0, nullptr};
extern "C" const Plugin* rooftile_plugin() { return &plugin; }
E2
for words in list "devices --no-measure" "why softmax 2x3 f32" "check softmax --quick" "bench softmax --shape 8x8"; do
  # shellcheck disable=SC2086
  {
    fault_in text 3 "text/$plugin" $words
    fault_in foreign 3 "foreign/$plugin.*no rooftile plug-in" $words
    fault_in quiet 3 "quiet/$plugin" $words
    fault_in older 3 "older/$plugin.*version 99" $words
    fault_in empty 3 "no (such )?plug-in" $words
  }
done
fault_in older 3 'version 99' report --out report.html
ROOFTILE_CPU=sse9 fault 3 'ROOFTILE_CPU=sse9' list
ROOFTILE_CPU=sse9 fault 3 'ROOFTILE_CPU=sse9' report --out report.html
ROOFTILE_CPU=sse9 fault 3 'ROOFTILE_CPU=sse9' devices

# Records.
head -c 3000 "$sample" >truncated.json
: >empty.json
echo '{"some": "JSON"}' >foreign.json
echo '{"schema": 2}' >newer.json
echo '{"schema": 1, "results": 7}' >types.json
echo '[1, 2]' >list.json
head -c 4096 /dev/zero >zeros.json
head -c 100000 /dev/zero | tr '\0' '[' >deep.json
printf '{"schema": 1, "rooftile": "\xff\xfe"}' >latin.json
fault 3 'absent.json.*No such file' report --from absent.json --out report.html
fault 3 'truncated.json.*JSON' report --from truncated.json --out report.html
fault 3 'empty.json.*empty' report --from empty.json --out report.html
fault 3 'foreign.json.*no rooftile record' report --from foreign.json --out report.html
fault 3 'newer.json.*schema' report --from newer.json --out report.html
fault 3 'types.json.*results' report --from types.json --out report.html
fault 3 'list.json.*no rooftile record' report --from list.json --out report.html
fault 3 'zeros.json.*JSON' report --from zeros.json --out report.html
fault 3 'deep.json.*deep' report --from deep.json --out report.html
fault 3 'latin.json.*JSON' report --from latin.json --out report.html
fault 3 'folder' report --from . --out report.html
fault 3 'foreign.json' report --from "$sample" foreign.json --out report.html

# Pictures.
echo "no picture" >text.png
printf '\x89PNG\r\n\x1a\n' >cut.png
# A header that promises 60000 x 60000 pixels.
printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0' >lying.png
printf '\xff\xd8\xff\xe0\0\x10JFIF' >cut.jpg
fault 3 'absent.png' image gray absent.png gray.png
for picture in text.png cut.png lying.png cut.jpg; do
  fault 3 "$picture" image gray $picture gray.png
  fault 3 "$picture" report --photo $picture --out report.html
done
fault 3 'folder' image gray . gray.png
fault 2 'OUT' image gray text.png
base64 -d >good.png <<'PNG'
iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP4z8Dw
//9/AAv7A/3dF29HAAAAAElFTkSuQmCC
PNG
fault 2 'gray.gif' image gray good.png gray.gif
fault 3 'missing' image gray good.png missing/gray.png

# Ctrl-C and SIGTERM in the midst of work: exit code 130 or 143, no file. (env: background jobs of a script ignore
# SIGINT.)
start() { # WORDS…
  find . -type f -printf '%p %s\n' | sort >"$work/log/before"
  env --default-signal=INT "$rooftile" "$@" >"$work/log/out" 2>"$work/log/err" &
  pid=$!
}
stop() { # SIGNAL WORDS…
  local signal=$1
  shift
  kill "-$signal" $pid 2>/dev/null || complain "rooftile $* ended before it could be interrupted: $(cat "$work/log/err")"
  for _ in 1 2 3; do # a second signal ends it at once, whatever it is doing
    for _ in $(seq 100); do kill -0 $pid 2>/dev/null && sleep 0.1; done
    kill "-$signal" $pid 2>/dev/null || break
  done
  wait $pid
  code=$?
}
interrupt() { # CODE SIGNAL WORDS…
  local expected=$1 signal=$2
  shift 2
  start "$@"
  sleep 1.5
  stop "$signal" "$@"
  judge "$expected" 'interrupted' "rooftile $*, interrupted by SIG$signal"
}
interrupt 130 INT bench --full --json bench.json --csv bench.csv
interrupt 143 TERM bench --full --json bench.json
interrupt 130 INT check --random 1000000 --random-only --json check.json
interrupt 143 TERM report --out report.html --json report.json
interrupt 130 INT devices --json machine.json

# A bench's rows are in its files after each of them, also when it is asked twice to stop, and no other file is there.
for how in INT TERM twice; do
  words=(bench copy add axpby dot softmax --no-baselines --json rows.json --csv rows.csv)
  start "${words[@]}"
  for _ in $(seq 1200); do
    [ "$(grep -c '"median_us"' rows.json 2>/dev/null)" -ge 2 ] 2>/dev/null && [ -s rows.csv ] && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
  done
  expected=130
  if [ $how = twice ]; then
    expected=143
    kill -TERM $pid
    stop TERM "${words[@]}"
  else
    [ $how = INT ] || expected=143
    stop $how "${words[@]}"
  fi
  rows=$(grep -c '"median_us"' rows.json)
  [ "$rows" -ge 2 ] || complain "a bench that was stopped ($how) kept $rows rows in JSON"
  [ "$(wc -l <rows.csv)" -eq $((rows + 1)) ] || complain "a bench that was stopped ($how) kept $rows rows in JSON, but not in CSV"
  grep -q 'stopped early: ' rows.json || complain "the record of a bench that was stopped ($how) does not say so"
  "$rooftile" report --from rows.json --out rows.html >/dev/null || complain "no report of rows.json ($how)"
  rm -f rows.json rows.csv rows.html
  judge $expected 'interrupted' "rooftile ${words[*]}, stopped ($how)"
done

echo "faults: $count faults, $bad problems"
[ "$bad" -eq 0 ]
