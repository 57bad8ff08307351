#!/usr/bin/env bash
# The repository's documentation is true, and the tool that says so notices each kind of untruth.
#   docs_test.sh DOCS_TOOL SOURCE_FOLDER
set -uo pipefail

tool=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
  echo "$1"
  bad=$((bad + 1))
}

# A small repository in which all is well.
make_repository() {
  rm -rf "$work/repository"
  mkdir -p "$work/repository"/{docs/course,bench,examples,rooftile/ops/softmax/ladder}
  cd "$work/repository" || exit 1
  echo '[{"title": "A. First", "lessons": [{"number": 1, "title": "One", "file": "docs/course/01_one.md#more"},
    {"number": 2, "title": "Two", "file": "docs/course/02_two.md"}]}]' >docs/course/course.json
  printf '# Course\n\n<!-- course-index -->\n<!-- /course-index -->\n' >docs/course/README.md
  printf '# One\n\n## More\n\n## More\n\n[up](../../README.md#two--three) [again](#more-1)\n' >docs/course/01_one.md
  printf '#include <x>\n// [first]\n  int f() {\n    return 1;\n  }\n// [/first]\n' >examples/first.cpp
  cat >bench/a.json <<'END'
{"schema": 1, "machine": {"cpu": "A CPU"}, "results": [
 {"op": "softmax", "direction": "forward", "variant": "tile", "dtype": "f32", "shape": "64x1024", "threads": 1,
  "cache": "cold", "median_us": 100.0, "bytes": 524288, "copy_us": 90.0, "limit_us": 80.0,
  "peers": [{"name": "oneDNN", "version": "2", "median_us": 150.0}]},
 {"op": "dot", "direction": "forward", "variant": "tile", "dtype": "f32", "shape": [64], "threads": 1,
  "cache": "warm", "median_us": 1.0, "bytes": 512, "copy_us": 0.9, "of_limit": 0.5, "peers": []}]}
END
  sed 's/"threads": 1,/"threads": 1, "group": "best",/; s/150.0/50.0/' bench/a.json >bench/b.json
  cat >bench/c.json <<'END'
{"machine": {"cpu": "A CPU", "memory_bytes": 1073741824,
  "caches": [{"kind": "data", "level": 1, "bytes": 32768, "effective_bytes": 32768},
             {"kind": "unified", "level": 2, "bytes": 1048576, "effective_bytes": 524288}],
  "levels": [{"name": "L1", "threads": 1, "copy_gbs": 200.0}, {"name": "memory", "threads": 1, "copy_gbs": 25.0}],
  "peaks": [{"name": "fma", "dtype": "f32", "threads": 1, "gflops": 100.0}]}, "results": [
 {"op": "copy", "shape": "1024", "dtype": "f32", "threads": 1, "cache": "warm", "median_us": 1.0, "bytes": 8192, "flops": 0},
 {"op": "copy", "shape": "131072", "dtype": "f32", "threads": 1, "cache": "cold", "median_us": 40.0, "bytes": 1048576, "flops": 0},
 {"op": "softmax", "shape": "64x1024", "dtype": "f32", "threads": 1, "cache": "cold", "median_us": 40.0, "bytes": 524288,
  "flops": 655360}]}
END
  mkdir -p docs/figures/traces
  cat >docs/figures/traces/t.json <<'END'
{"traces": [{"variant": "v", "lines": [{"access": "global load", "requests": 2, "sectors": 8, "wavefronts": 0},
  {"access": "global store", "requests": 1, "sectors": 8, "wavefronts": 0},
  {"access": "shared load", "requests": 1, "sectors": 0, "wavefronts": 32}]},
 {"variant": "w", "lines": [{"access": "global load", "requests": 1, "sectors": 32, "wavefronts": 0}]}]}
END
  touch rooftile/ops/softmax/ladder/01_naive.cpp
  cat >README.md <<'END'
# Two: three?

## Two & three

[course](docs/course/README.md), `examples/first.cpp`, `rooftile/ops/*/ladder/01_*.cpp`, `rooftile/ops/<op>/`, [x](https://example.org),
[line](examples/first.cpp#L6), `[no link](nowhere.md)`, <a href="docs/course/">all</a>

```
[no link either](nowhere.md) `docs/nothing.md`
```

<!-- snippet: examples/first.cpp first -->
```cpp
```

- in a list

  <!-- snippet: examples/first.cpp first -->

<!-- bench: a.json op=softmax -->
<!-- /bench -->

<!-- bench: a.json optional op=softmax group=ladder -->
<!-- /bench -->

<!-- figure: bars ladder record=a.json op=softmax baselines=oneDNN -->
<!-- /figure -->

<!-- figure: warp sectors strides=1,2 trace=t.json variant=v,v access=global_load,global_store -->
<!-- /figure -->

<!-- figure: tile banks layouts=32,33 trace=t.json variant=v access=shared_load -->
<!-- /figure -->

<!-- figure: tree shuffle -->
<!-- /figure -->

<!-- figure: held registers columns=4096 bytes=4 chunks=8 -->
<!-- /figure -->

<!-- figure: over cover rows=100 columns=180 tile=32 -->
<!-- /figure -->

<!-- figure: turns timeline rows=4 -->
<!-- /figure -->

<!-- figure: steps levels record=c.json threads=1 -->
<!-- /figure -->

<!-- figure: stairs sizes record=c.json op=copy -->
<!-- /figure -->

<!-- figure: roofs roofline record=c.json op=softmax threads=1 dtype=f32 -->
<!-- /figure -->

<!-- figure: moving coalescing trace=t.json variant=w,v access=global_load,global_load -->
<!-- /figure -->

<!-- figure: shown terminal text=said.txt -->
<!-- /figure -->

<!-- kernels: rooftile/ops -->
<!-- /kernels -->

<!-- gaps: b.json least=3 -->
<!-- /gaps -->
END
  printf '$ rooftile check\nall ok\n' >said.txt
  printf 'Status softmax(int);\nStatus softmax_backward(int);\n' >rooftile/ops/softmax/softmax.h
  printf 'def softmax_plain(x):\n' >rooftile/ops/softmax/versions.py
  touch rooftile/ops/softmax/softmax.cpu.cpp
  "$tool" --update . >"$work/update.txt" 2>&1 || complain "a repository in which all is well has problems:
$(cat "$work/update.txt")"
}

# notices NAME EXPECTED COMMAND: after COMMAND, the check must fail with a message that matches EXPECTED.
notices() {
  make_repository
  eval "$3"
  if "$tool" --check . >"$work/check.txt" 2>&1; then
    complain "$1: was not noticed"
  elif ! grep -qE "$2" "$work/check.txt"; then
    complain "$1: no message matches '$2' in
$(cat "$work/check.txt")"
  fi
}

make_repository
"$tool" --check . >"$work/check.txt" 2>&1 || complain "the check finds problems right after an update:
$(cat "$work/check.txt")"
for expected in '^  ```cpp$' '^    return 1;$' '^int f\(\) \{$' '^  return 1;$' '^\| 64×1024 \| f32 \| 1 \| cold \| 100 \| 5\.24 \| 90% \| 80% \| 1\.50× \|$' 'A CPU'; do
  grep -qE "$expected" README.md || complain "README.md lacks a line '$expected' after an update"
done
grep -qF '| 1 | [One](01_one.md#more) |' docs/course/README.md || complain "lesson 1 is not linked in the index"
grep -qF '<i>Two</i>' docs/course/README.md || complain "lesson 2, which is to come, is not greyed"

notices "a dead link" 'README.md:[0-9]+: link docs/none.md: there is no' "echo '[a](docs/none.md)' >>README.md"
notices "a dead image" 'there is no docs/none.png' "echo '![a](docs/none.png)' >>README.md"
notices "a dead href" 'there is no docs/none' "echo '<a href=\"docs/none\">a</a>' >>README.md"
notices "a dead reference" 'there is no docs/none.md' "printf '\n[a]: docs/none.md\n' >>README.md"
notices "a dead anchor" 'has no heading #nine' "echo '[a](docs/course/01_one.md#nine)' >>README.md"
notices "a dead anchor on the same page" 'has no heading #nine' "echo '[a](#nine)' >>README.md"
notices "a line beyond the end" 'has 6 lines' "echo '[a](examples/first.cpp#L7)' >>README.md"
notices "an absolute link" 'is absolute' "echo '[a](/README.md)' >>README.md"
notices "a link out" 'leads out of the repository' "echo '[a](../x)' >>README.md"
notices "a dead path in code" 'examples/none.cpp. names nothing' "echo 'see \`examples/none.cpp\`' >>README.md"
notices "a pattern without a match" 'matches no file' "echo 'see \`examples/*.cu\`' >>README.md"
notices "a dead rung" 'ladder/02_x.cpp. names nothing' "echo 'see \`ladder/02_x.cpp\`' >rooftile/ops/softmax/README.md"
notices "a snippet edited on the page" 'differs from its source' "sed -i 's/return 1/return 2/' README.md"
notices "a snippet's source edited" 'differs from its source' "sed -i 's/return 1/return 2/' examples/first.cpp"
notices "a snippet's source gone" 'there is no file examples/first.cpp' "rm examples/first.cpp"
notices "a snippet's region gone" 'has no region' "sed -i 's/.first./[second]/' examples/first.cpp"
notices "a region without an end" 'never closes' "sed -i '/.\/first./d' examples/first.cpp"
notices "a region twice" 'region .first. 2 times' "cat examples/first.cpp >two && cat two >>examples/first.cpp"
notices "a figure edited on the page" 'differs from its source' "sed -i 's/90%/99%/' README.md"
notices "a new measurement" 'differs from its source' "sed -i 's/100.0/101.0/' bench/a.json"
notices "a bench file gone" 'there is no bench/a.json' "rm bench/a.json"
notices "a broken bench file" 'is no bench file' "echo '{' >bench/a.json"
notices "a filter that nothing fits" 'no record fits' "sed -i 's/op=softmax/op=sofmax/' README.md"
notices "a filter on no field" 'no record has a field opp' "sed -i 's/op=softmax/opp=softmax/' README.md"
notices "a figure where none was measured" 'differs from its source' "sed -i '/optional/a 1 µs' README.md"
notices "an optional table whose records came" 'differs from its source' \
  "sed -i 's/\"threads\": 1,/\"threads\": 1, \"group\": \"ladder\",/' bench/a.json"
notices "a table without an end" 'never closed' "sed -i '/\/bench/d' README.md"
grep -qF '![Bar chart of softmax 64×1024, f32, from memory, speed as a share of a copy: tile 90%, oneDNN 60%.](docs/figures/bars.svg)' README.md ||
  complain "README.md lacks the ladder's text alternative after an update"
grep -qF '| softmax | f32 | 64×1024 | 100 | oneDNN, 50.0 | 50% |' README.md || complain "README.md lacks a gap after an update"
for figure in bars warp tile tree steps stairs roofs moving held over turns shown; do
  grep -q 'prefers-color-scheme: dark' docs/figures/$figure.svg && grep -q '<desc' docs/figures/$figure.svg ||
    complain "docs/figures/$figure.svg is not drawn, or says nothing to who cannot see it"
done
for expected in 'level of memory: L1, 32 KiB 200 GB/s; memory, 1 GiB 25.0 GB/s.](' 'against size. rooftile: 8.19 GB/s at 8 KiB, at most 26.2 GB/s at 1 MiB,' \
  'in the registers of 128 threads, 8 16-byte vectors each. Thread 37' 'under 4 × 6 blocks of 32 × 32. Blue: the matrix. Grey: threads past its edge, 27%' \
  'it is written: 20 units. With row i written while row i + 1 is read: 14 units.' \
  'at most 100 GFLOP/s in f32; the ridge is at 4 flops per byte. softmax: 1.25 flops per byte, 16.4 GFLOP/s.]('; do
  grep -qF "$expected" README.md || complain "README.md lacks '$expected' after an update"
done
grep -qF '| softmax | ✓ |  | ✓ | ✓ |  |' README.md || complain "README.md lacks the kernel's row after an update"
grep -qF '![A terminal: $ rooftile check all ok](docs/figures/shown.svg)' README.md || complain "README.md lacks the terminal after an update"
sed -i 's/"limit_us"/"limit": "rated flops", "limit_us"/' bench/a.json && "$tool" --update . >/dev/null
grep -qF 'speed as a share of the rated flops: tile 80%, oneDNN 53%.](docs/figures/bars.svg)' README.md ||
  complain "README.md lacks the ladder that flops limit after an update"
notices "another text in a terminal" 'differs from its source' "sed -i 's/all ok/1 FAILED/' said.txt"
notices "a terminal without its text" 'needs text=FILE' "rm said.txt"
notices "a kernel that came" 'differs from its source' "touch rooftile/ops/softmax/softmax.cu"
notices "a table of no kernels" 'has a header of its name' "sed -i 's,kernels: rooftile/ops,kernels: rooftile,' README.md"
notices "a figure edited in its file" 'bars.svg:1: is not what its page draws' "sed -i 's/90%/99%/' docs/figures/bars.svg"
notices "a new measurement under a figure" 'bars.svg:1: is not what its page draws' "sed -i 's/100.0/101.0/' bench/a.json"
notices "a figure's file gone" 'bars.svg:1: is not what' "rm docs/figures/bars.svg"
notices "a figure that no page shows" 'no page shows this figure' "cp docs/figures/bars.svg docs/figures/other.svg"
notices "a figure without an end" 'figure is never closed' "sed -i '/\/figure/d' README.md"
notices "a figure of no kind" 'no figure of kind pie' "sed -i 's/tree shuffle/tree pie/' README.md"
notices "a row too long for a block" 'is held by no block' "sed -i 's/columns=4096 bytes=4 chunks=8/columns=32768 bytes=4 chunks=1/' README.md"
notices "a tile of nothing" 'cover takes rows=' "sed -i 's/tile=32 -->/tile=0 -->/' README.md"
notices "a timeline of one row" 'timeline takes rows=2 to 8' "sed -i 's/timeline rows=4/timeline rows=1/' README.md"
notices "a machine without such levels" 'no levels with threads=2' "sed -i 's/levels record=c.json threads=1/levels record=c.json threads=2/' README.md"
notices "a plot of one size" 'needs records of several sizes' "sed -i 's/c.json op=copy/c.json op=copy shape=1024/' README.md"
notices "a roofline of a copy" 'no place for a kernel without flops' "sed -i 's/c.json op=softmax threads/c.json op=copy threads/' README.md"
notices "a roofline without its peak" 'needs threads=N dtype=D' "sed -i 's/\"dtype\": \"f32\", \"threads\": 1, \"gflops\"/\"dtype\": \"f64\", \"threads\": 1, \"gflops\"/' bench/c.json"
notices "a plot of two functions" 'the filters let 2 through' "sed -i 's/c.json op=copy/c.json threads=1/' README.md
  sed -i 's/\"results\": \[/&{\"op\": \"softmax\", \"dtype\": \"f32\", \"threads\": 1, \"median_us\": 1.0, \"bytes\": 64},/' bench/c.json"
notices "a new measurement under a chart" 'stairs.svg:1: is not what its page draws' "sed -i 's/\"median_us\": 1.0, \"bytes\": 8192/\"median_us\": 2.0, \"bytes\": 8192/' bench/c.json"
notices "a figure of no baseline" 'has the baseline MKL' "sed -i 's/baselines=oneDNN/baselines=MKL/' README.md"
notices "a picture that its trace contradicts" 'has 8 sectors per request in t.json, the picture shows 16' "sed -i 's/strides=1,2/strides=1,4/' README.md"
notices "banks that the trace contradicts" 'has 1 wavefronts per request' "sed -i 's/\"wavefronts\": 32/\"wavefronts\": 1/' docs/figures/traces/t.json"
notices "an animation that the trace contradicts" 'has 32 sectors per request in t.json, the picture shows 4' \
  "sed -i 's/variant=w,v/variant=w,w/' README.md"
notices "two figures of one name" 'is drawn in two ways' "sed -i 's/figure: tree shuffle/figure: bars shuffle/' README.md"
notices "a time that no figure shows" '101 µs is in no ladder and no table' "echo 'Both: 100 → 101 µs.' >>README.md"
notices "an earlier time that no figure shows" '99 µs is in no ladder' "echo 'Both: 99 → 100 µs.' >>README.md"
notices "a gap that closed" 'differs from its source' "sed -i 's/50.0/98.0/' bench/b.json"
make_repository
sed -i 's/"file": "docs\/course\/01_one.md#more"/&, "continued": [{"title": "More", "file": "docs\/course\/01_more.md"}]/' docs/course/course.json
echo '# More' >docs/course/01_more.md
"$tool" --update . >"$work/update.txt" 2>&1 || complain "a lesson that goes on has problems: $(cat "$work/update.txt")"
grep -qF '| | [More](01_more.md) | `docs/course/01_more.md` |' docs/course/README.md || complain "a lesson's further page is not in the index"
notices "a lesson that came" 'README.md:[0-9]+: differs' "echo '# Two' >docs/course/02_two.md"
notices "a lesson that leads nowhere" '01_one.md:[0-9]+: a lesson ends with' "echo '# Two' >docs/course/02_two.md"
notices "a lesson that leads past the next" '01_one.md:[0-9]+: the next lesson that is there is' \
  "echo '# Two' >docs/course/02_two.md; echo '**Next:** [up](../../README.md)' >>docs/course/01_one.md"
notices "a lesson that went" 'differs' "rm docs/course/01_one.md"
notices "a lesson's heading gone" 'lesson 1: .* has no heading' "printf '# One\n' >docs/course/01_one.md"
notices "a page outside the list" 'is in no entry' "echo '# Three' >docs/course/03_three.md"
notices "a gap in the numbers" 'lesson 3 stands where 2' "sed -i 's/\"number\": 2/\"number\": 3/' docs/course/course.json"
notices "a broken list" 'is not a JSON list' "echo '{' >docs/course/course.json"

cd "$source" && "$tool" --check . || bad=$((bad + 1))
echo "docs_test: $bad problems"
[ "$bad" -eq 0 ]
