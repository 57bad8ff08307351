# The short front of the build: CMake does the work (see CMakePresets.json), in build/release.
#   make report             packages, build, check and measure: writes report.html
#   make report PHOTO=FILE  the same with your picture in its gallery
#   make help               the rest

PREFIX ?= /usr/local
ISAS ?= baseline;avx2;avx512
REPORT ?= report.html
PHOTO ?=
OP ?=
export PHOTO REPORT PREFIX  # as shell variables, so that file names with spaces or quotes stay whole

.PHONY: help report build check test test-sanitized test-python wheel test-all mutants sanitize-gpu format lint docs site install clean
.DEFAULT_GOAL := help

help:
	@echo "make report    install what is missing, build for this machine, check, measure, write report.html"
	@echo "               PHOTO=picture.jpg puts your picture through the image kernels, REPORT=file names the output"
	@echo "make test      install what is missing, build and run the tests"
	@echo "make check OP=rms_norm  builds that op alone, checks it on this CPU and the emulated device: a minute"
	@echo "make test-sanitized  the same code under AddressSanitizer and UBSan, and its threads under ThreadSanitizer"
	@echo "make test-python  the Python package in a virtual environment in build/, on NumPy, PyTorch and JAX from PyPI"
	@echo "make wheel     build/wheels: the Python package, tried in an empty environment; CUDA=1: and its plug-in for GPUs"
	@echo "make test-all  both, and the long tests: everything under ThreadSanitizer, all cases, tensors beyond 2^31 elements,"
	@echo "               planted faults (make mutants), reads of memory that nobody wrote (valgrind)"
	@echo "make mutants   plant the faults of tests/mutants one by one; each must make its check fail"
	@echo "make sanitize-gpu  compute-sanitizer's four tools over each kernel of build/cuda, on this machine's GPU"
	@echo "make build     the library, its plug-ins and the command rooftile, in build/release"
	@echo "make install   the same, then to PREFIX (/usr/local)"
	@echo "make format    format every source (clang-format, pinned)"
	@echo "make lint      check format, scripts and the repository's own rules"
	@echo "make docs      write the reference, snippets, tables of figures and the course's index anew, check links"
	@echo "make site      the same pages as a web site in build/site, with search; MkDocs comes from PyPI into build/"
	@echo "make clean     remove build/"

report:
	@scripts/install_packages.sh
	@mkdir -p build
	@cmake --preset release -DROOFTILE_ISAS=native -DROOFTILE_TESTS=OFF -DROOFTILE_EMULATED=OFF >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	cmake --build --preset release
	build/release/bin/rooftile report --out "$$REPORT" $${PHOTO:+--photo "$$PHOTO"}
	@echo "The report is at $$(realpath "$$REPORT")"

build:
	@scripts/install_packages.sh
	cmake --preset release "-DROOFTILE_ISAS=$(ISAS)" -DROOFTILE_TESTS=OFF -DROOFTILE_EMULATED=ON -DROOFTILE_EMULATED_F16=ON
	cmake --build --preset release

check:
	@scripts/check_op.sh $(OP)

test:
	@scripts/test.sh

test-sanitized:
	@scripts/test.sh --sanitized

test-python:
	@scripts/test_python.sh

wheel:
	@scripts/wheel.sh $(if $(CUDA),--cuda)

test-all:
	@scripts/test.sh --all

mutants:
	@scripts/install_packages.sh --test
	@scripts/mutants.sh

GPU_COMMAND ?= build/cuda/bin/rooftile
sanitize-gpu:
	@mkdir -p build; failed=0; for tool in memcheck racecheck initcheck synccheck; do \
	  echo "== $$tool"; lines=2; \
	  compute-sanitizer --tool $$tool --error-exitcode 1 $(GPU_COMMAND) check --device cuda --quick \
	    >build/sanitize-gpu.log 2>&1 || { failed=1; lines=60; }; \
	  tail -n $$lines build/sanitize-gpu.log; \
	done; exit $$failed

format:
	@scripts/format.sh

lint:
	@scripts/format.sh --check
	@scripts/lint.sh

docs:
	@scripts/install_packages.sh --test
	@cmake --preset release -DROOFTILE_TESTS=ON >/dev/null
	@cmake --build --preset release --target docs_tool reference_tool >/dev/null
	@build/release/bin/reference_tool --update .
	@build/release/bin/docs_tool --update .

site:
	@scripts/site.sh

install: build
	cmake --install build/release --prefix "$$PREFIX"

clean:
	rm -rf build
