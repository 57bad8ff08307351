#!/usr/bin/env bash
# The command rooftile from outside: what it prints, writes and answers. Faults have a script of their own.
#   cli_test.sh ROOFTILE SOURCE_FOLDER [--long]     --long also makes a whole report
set -uo pipefail

rooftile=$1
source=$2
long=${3:-}
unset ROOFTILE_CPU ROOFTILE_PLUGINS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
complain() {
  echo "cli: $1"
  bad=$((bad + 1))
}
# ok WORDS…: runs, answers 0, says nothing on standard error.
ok() {
  "$rooftile" "$@" >out.txt 2>err.txt
  local code=$?
  [ "$code" -eq 0 ] || complain "rooftile $*: exit code $code: $(head -c 400 err.txt)"
  [ ! -s err.txt ] || [ "$code" -ne 0 ] || complain "rooftile $*: standard error is not empty: $(head -c 400 err.txt)"
}
# holds PATTERN [FILE]
holds() { grep -qE -e "$1" "${2:-out.txt}" || complain "${2:-the output} lacks /$1/: $(head -c 600 "${2:-out.txt}")"; }

for version in --version -V; do
  ok $version
  holds '^rooftile [0-9]+\.[0-9]+\.[0-9]+ \((unknown|[-.0-9a-z]+)\)$'
done
ok --help
for command in devices list check bench why trace profile asm report plot exercise image; do
  holds "^  $command "
done
for code in 0 1 2 3 130 143; do holds "^ *$code  [a-z]"; done
for command in devices list check bench why trace profile asm report plot exercise "exercise check" "image gray" "image pattern"; do
  # shellcheck disable=SC2086
  ok $command --help
  holds '^Examples?:'
  holds "^  rooftile $command"
done

# `help bench` is `bench --help`.
for command in bench "image gray"; do
  # shellcheck disable=SC2086
  ok $command --help
  mv out.txt help.txt
  # shellcheck disable=SC2086
  ok help $command
  cmp -s help.txt out.txt || complain "help $command is not $command --help"
done
ok help
holds '^  rooftile help bench '
holds '^  -V,--version '

# The manual page: every command and option, exit codes, environment; no warning of those that render it.
ok generate man --out rooftile.1
for command in devices list check bench why trace profile asm report plot "exercise hint" help "image gray" "image pattern"; do
  holds "^\.SS rooftile $command\$" rooftile.1
done
for word in 'threads' 'json' 'luminosity' 'architecture' 'version'; do holds "\\\\-\\\\-${word}[\\\\]fR" rooftile.1; done
for code in 0 1 2 3 130 143 ROOFTILE_CPU; do holds "^\.B $code\$" rooftile.1; done
if command -v groff >/dev/null; then
  groff -man -ww -Tutf8 -z rooftile.1 >groff.txt 2>&1 && [ ! -s groff.txt ] || complain "groff: $(head -c 400 groff.txt)"
fi
if command -v mandoc >/dev/null; then
  mandoc -Tlint -Wwarning rooftile.1 >lint.txt 2>&1 || complain "mandoc: $(head -c 400 lint.txt)"
fi

# The completion, asked as bash asks: COMP_WORDS, of which the last is completed.
ok generate bash --out completion.sh
completes() { # EXPECTED WORDS…
  local expected=$1 answer
  shift
  answer=$(bash -c 'source ./completion.sh; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rooftile; echo "${COMPREPLY[*]}"' \
    bash rooftile "$@" 2>&1)
  [ "$answer" = "$expected" ] || complain "completion of rooftile $*: \"$answer\", expected \"$expected\""
}
completes bench be
completes "--device --dtype" bench --d
completes f16 check softmax --dtype = f1
completes "bf16 bool" bench --dtype b
completes "f32,bf16 f32,bool" bench --dtype f32,b
completes bf16 bench --dtype = bf
completes "softmax softmax_backward" why soft
completes "emulated emulated-checked" check --device emu
completes padded_rows why softmax 2x3 f32 --layout pad
completes gray image g
completes pattern image p
completes --luminosity image gray --l
completes "--frames --fps" image pattern --f
completes trace help tr
completes "" bench --json "" # a file

ok list
for function in softmax softmax_backward copy rgb_to_gray; do
  holds "^$function "
done
ok list softmax_backward
holds '^softmax_backward '
grep -q '^softmax (' out.txt && complain "list softmax_backward lists softmax, too"
ok list add
holds '^ *01_scalar +rung '
holds '^ *01_one_element +GPU rung '
ok list softmax --json -
holds '"function": "softmax"'
holds '"role": "standard"'

ok devices --no-measure
holds '^Instruction set '
holds '^Threads +[0-9]+: this process may run on '
holds '^Streaming from '
holds '^GPU  '
holds '^Emulated GPU  '
ok devices --no-measure --json machine.json
holds '"isa_reason"' machine.json
holds '"streaming_bytes"' machine.json
holds '"gpus": \[' machine.json

# why: what runs, what does not and for which reason; the answer is that of a call, since it takes the same way.
ok why softmax 64x1024 f32
holds '^tile .* runs: '
ok why softmax 2x100000 f32
holds '^tile .* refuses: softmax: .*100000'
holds '^online .* runs: '
ok why rms_norm 8192x4096 bf16 --device cuda # no GPU need be here
holds '^  tuning row: 1 row operand read, 1 vector over the columns, 2 bytes per element, no column sums$'
holds '^  compute capability 9.0: a row of 4096 takes [0-9]+ threads, 1 row per block$'
ok why rms_norm 8192x100000 f32 --device emulated
holds '^  compute capability 9.0: a row of 100000 takes a cluster of [0-9]+ blocks'
holds '^  other GPUs from 8.0: a row of 100000 is too long to hold'
ok why gelu_backward 70x130 f32 --device cuda
holds '^  tuning row: elementwise, 3 operands of 4 bytes'
ok why softmax 64x1024 f32 --device cuda
holds 'numbers of their own'
ok list --tuning rms_norm transpose
holds '^rms_norm_backward +2 +rows +2 +1 +yes '
holds '^transpose +2 +own kernels'
ok why softmax 2x100 f32 --set log=1
holds '^01_scalar .* refuses: .*log-softmax'
ok why softmax 2x100 f32 --layout strided_columns
holds '^01_scalar .* refuses: .*dense'
ok why softmax 2x100 f32 --backward
holds '^softmax_backward 2x100 f32 on '
ok why softmax_backward 2x100 f32 --in-place
holds '^softmax_backward 2x100 f32 on '
ok why softmax 2×3×4 bf16 --json -
holds '"chosen": "tile"'
ok why softmax 0x5 f32
ok why softmax 2147483648x4 f32 # 32 GiB twice, of which none is taken
holds '^tile .* runs: '
isa=$(sed -n 's/^ *"isa": "\(.*\)",$/\1/p' machine.json | head -n 1)
ok why softmax 2x3 f32 --isa "$isa"
holds " on $isa, "

ok check softmax --quick --dtype f32
holds '^softmax +tile .* ok$'
holds 'checks, all ok$'
grep -q '%' err.txt && complain "a progress bar in a pipe: $(cat err.txt)"
ok check softmax --forward --quick --dtype f16 --json check.json --csv check.csv
holds '"checks"' check.json
holds '^function,op,direction,variant,isa,dtype,' check.csv
grep -q backward check.csv && complain "--forward checked the backward function"
ok check softmax --forward --quick --dtype f16 --json -
[ "$(head -c 1 out.txt)" = "{" ] || complain "--json - prints more than JSON: $(head -c 100 out.txt)"
ok check copy --dtype f32 --random 20 --random-only --seed 3
holds '^copy '

ok bench softmax --forward --dtype f32 --shape 64x128 --threads 1 --no-baselines --json bench.json --csv bench.csv
holds '^softmax .*64x128 .*f32'
holds '"median_us"' bench.json
holds 'median_us' bench.csv
[ "$(wc -l <bench.csv)" -ge 2 ] || complain "bench.csv holds no line: $(cat bench.csv)"

holds '"commit": "(unknown|[-.0-9a-z]+)"' bench.json
# Beside an older record: here one of nearly no time, on another machine.
sed -E 's/("(p5|median|p95)_us": )[0-9.]+/\10.0001/; s/"cpu": "/&not /' bench.json >older.json
ok bench softmax --forward --dtype f32 --shape 64x128 --threads 1 --no-baselines --compare older.json
holds '^slower +softmax tile 64x128 f32, 1 thread, warm '
holds '^beside older.json \(.+\): 2 slower, 0 faster, 0 within the spread$'
holds '^note: older.json was recorded with another cpu: not '
# Records of both kinds are one report's.
# A bench that was short of time goes on where it ended; two parts make a whole. Needs the emulated device.
if [ -e "$(dirname "$rooftile")/../lib/rooftile-emulated.so" ]; then
  few=(bench copy add --device emulated --dtype "f32,bf16" --json)
  ok "${few[@]}" gpu.json --seconds 0.000001
  [ "$(grep -c '"median_us"' gpu.json)" -lt 6 ] || complain "--seconds ended nothing: $(cat gpu.json)"
  holds 'time was short: 3 of 4 rows' gpu.json
  ok "${few[@]}" gpu.json --resume
  holds '^copy .* bf16 '
  ok "${few[@]}" first.json --part 1/2
  ok "${few[@]}" second.json --part 2/2
  ok bench --merge first.json second.json --json merged.json
  holds '^4 results of 2 parts'
  ok report --from merged.json --out gpu.html
fi
for words in "--resume" "--part 1/2" "--device emulated --part 3/2" "--device emulated --resume"; do
  # shellcheck disable=SC2086
  "$rooftile" bench copy $words >out.txt 2>&1
  [ "$?" -eq 2 ] || complain "bench copy $words is not refused: $(cat out.txt)"
done
ok report --from check.json bench.json --out both.html
holds "^report: +$work/both.html$"
holds '64×128' both.html
ok report --from "$source/tests/data/report_sample.json" --out first.html --json copy.json
holds '</html>' first.html
ok report --from copy.json --out again.html
cmp -s first.html again.html || complain "a record that was read and written again gives another page"
ok report --from copy.json --out -
cmp -s first.html out.txt || complain "--out - prints another page, or more than the page"

# Kernels link to their lessons: in this checkout where nothing else is said.
lesson=$(sed -n 's/.*href="\([^":]*rooftile\/ops\/softmax\/README.md\)".*/\1/p' first.html | head -n 1)
[ -n "$lesson" ] && [ -e "$lesson" ] || complain "the report links to \"$lesson\" as softmax's lesson"
ok report --from copy.json --out linked.html --docs-url https://example.org/docs
holds 'href="https://example.org/docs/rooftile/ops/softmax/README.md"' linked.html

# The trace, where the build has the checked device (sanitized ones have not). 4096 floats, 512 bytes to a request.
if [ -e "$(dirname "$rooftile")/../lib/rooftile-emulated-checked.so" ]; then
  ok trace add --shape 4096 --dtype f32
  holds '^add 4096 f32 tile on sm_90$'
  holds '^blas1.tile.h:[0-9]+ +global load +32 +16 +100.0%  [^ ]'
  holds 'Global memory: 49152 bytes moved in 1536 sectors; 49152 different bytes, 32768 read and 16384 written;'
  holds "^the op's cases state 49152\\.\$"
  ok trace axpby --shape 4096 --dtype f32 # y in place: read and written
  holds '49152 bytes moved in 1536 sectors; 32768 different bytes, 32768 read and 16384 written;'
  ok trace softmax --backward --all --dtype bf16 --json trace.json
  holds '^softmax_backward 64x1024 bf16 tile '
  holds '"conflicts": 0' trace.json
  ok report --from bench.json trace.json --out traced.html
  holds 'softmax backward bf16 64×1024, tile' traced.html
  ok trace softmax --json -
  [ "$(head -c 1 out.txt)" = "{" ] || complain "trace --json - prints more than JSON: $(head -c 100 out.txt)"
else
  echo "cli: no checked emulated device in this build: trace was not tried"
fi

# A profile from numbers that were written by hand: no GPU was asked. What stands in them is in tests/ncu_test.cpp.
recorded=$source/tests/data/ncu_raw_by_hand.csv
ok profile dot --shape 262144 --dtype f32 --from "$recorded" --csv again.csv
holds '^dot 262144 f32, 2 launches$'
holds '^  duration +20.00 µs$'
holds '^  memory +1 MiB read, 512 KiB written: 79 GB/s, 62.5% of the peak$'
holds '^  global stores +1024 requests, 32.00 sectors each$'
holds '^  shared stores +256 requests, 8192 wavefronts, 7936 conflicts$'
holds '^  occupancy +48.2% of 50.0% possible, limited by registers$'
holds '^  waits for +long scoreboard 9.75, wait 2.00, barrier 0.50, not selected 0.25 cycles an instruction$'
holds '^  registers +32 a thread; 8 sectors of local memory \(spills\)$'
holds '2097160 bytes and 524288 flops: 93 GB/s'
cmp -s "$recorded" again.csv || complain "--csv keeps something else than ncu wrote"
# A program in ncu's place: it is given this command and the call, and its table is read.
mkdir tools
cat >tools/ncu <<NCU
#!/bin/sh
echo "\$@" >"$work/asked.txt"
cat "$recorded"
NCU
chmod +x tools/ncu
ok profile softmax --backward --shape 64x128 --dtype f16 --variant tile --set scale=0.5 --tools tools
holds '^softmax_backward 64x128 f16 scale=0.5 tile, 2 launches$'
holds "--csv --page raw .*--metrics gpu__time_duration.sum,.* $(readlink -f "$rooftile") profile softmax_backward --run \
--shape 64x128 --dtype f16 --variant tile --set scale=0.5\$" asked.txt

# Assembly of the CPU's plug-in, with its source.
ok asm add --variant tile --dtype f32
holds '^add tile in rooftile-cpu-[a-z0-9]+.so: [0-9]+ functions$'
holds '^  rooftile/ops/blas1/blas1.cpu.cpp:[0-9]+  [^ ]'
holds '^        [a-z]+ +%'
grep -q '^[^ ].*bf16>.*:$' out.txt && complain "asm --dtype f32 shows a function for bf16"
ok asm softmax --variant 01_scalar --kernel 'launch_scalar\(' --no-source
holds '^softmax 01_scalar in .*: [0-9]+ functions?$'
holds '^  rooftile/ops/softmax/ladder/01_scalar.cpp:[0-9]+$'
# A variant that takes none of the cases was not checked.
"$rooftile" check layer_norm --variant 01_scalar --dtype f64 --quick >out.txt 2>err.txt
[ "$?" -eq 2 ] || complain "check of no case passes: $(head -c 400 out.txt)"
holds '^0 cases, .*nothing was checked$'
holds '^rooftile: nothing was checked: ' err.txt
# Where the function refuses the elements there is no code to show.
"$rooftile" why softmax 64x1024 i32 2>why.txt
"$rooftile" asm softmax --dtype i32 >out.txt 2>asm.txt
[ "$?" -eq 1 ] || complain "asm softmax --dtype i32 is not refused: $(head -c 400 out.txt)"
holds '^rooftile: softmax: x is .* i32, must be one of f64, f32' asm.txt
cmp -s why.txt asm.txt || complain "asm refuses otherwise than why: $(cat asm.txt why.txt)"
# Nor of a function that is composed of others.
if "$rooftile" list linear_cross_entropy >list.txt 2>&1; then
  "$rooftile" asm linear_cross_entropy >out.txt 2>asm.txt && complain "asm linear_cross_entropy finds code: $(head -c 400 out.txt)"
  holds '^rooftile: linear_cross_entropy: variant "chunks" has no machine code of its own: gemm, ' asm.txt
else
  echo "cli: no linear_cross_entropy in this build: asm of a composed function was not tried"
fi

# A picture of one red and one white pixel.
base64 -d >red.png <<'PNG'
iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP4z8Dw
//9/AAv7A/3dF29HAAAAAElFTkSuQmCC
PNG
for out in gray.png gray.jpg; do
  ok image gray red.png $out
  holds "^red.png: 2x1, gray in .* ms"
  [ -s $out ] || complain "image gray wrote no $out"
done
if "$rooftile" list box_blur >list.txt 2>&1; then
  ok image blur red.png blurred.png --radius 3
  ok image blur red.png blurred.jpg --sigma 2.5 --border reflect_101
else
  echo "cli: no blur in this build: image blur was not tried"
fi
ok image gray gray.png twice.png
holds 'gray already'
cmp -s gray.png twice.png || complain "gray of gray is another picture"
ok image gray --luminosity red.png luminosity.png
cmp -s gray.png luminosity.png && complain "--luminosity changes nothing"

# A reader that goes away ends the output, not with an error.
"$rooftile" list 2>err.txt | head -n 1 >out.txt
[ "${PIPESTATUS[0]}" -eq 0 ] && [ ! -s err.txt ] || complain "rooftile list | head: $(cat err.txt)"
"$rooftile" report --from copy.json --out - 2>err.txt | head -c 10 >out.txt
[ "${PIPESTATUS[0]}" -eq 0 ] && [ ! -s err.txt ] || complain "rooftile report --out - | head: $(cat err.txt)"

# On a terminal there is a bar, and nothing of it stays in front of the next line.
if command -v script >/dev/null; then
  TERM=xterm script -qec "'$rooftile' check softmax --quick --dtype f32" /dev/null </dev/null >terminal.txt 2>&1
  holds 'checking  \[[#.]{24}\] +[0-9]+%' terminal.txt
  TERM=dumb script -qec "'$rooftile' check softmax --quick --dtype f32" /dev/null </dev/null >terminal.txt 2>&1
  grep -q '%' terminal.txt && complain "a progress bar on a dumb terminal"
else
  echo "cli: no script(1) here: the progress bar was not tried"
fi

if [ "$long" = --long ]; then
  start=$SECONDS
  ok report --photo red.png --out report.html --json report.json
  [ $((SECONDS - start)) -le 180 ] || complain "report took $((SECONDS - start)) s, at most 180 are granted"
  for part in results checks gallery; do holds "\"$part\": \\[\$" report.json; done
  holds '</html>' report.html
fi

echo "cli: $bad problems"
[ "$bad" -eq 0 ]
