# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` do all the set-up themselves: system packages (where that is allowed), the Python
# environment .venv, engine and lab. What is done is not done again.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
DONE := build/.done
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
export PYTHON
export CMAKE_GENERATOR := Ninja
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
# CMake and Ninja from PyPI where the system's are missing or too old; mpiexec and the MPI compiler of the same wheel.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Files and folders below some folders; folders too, because their time changes when a file goes away. Not the folders
# themselves: a folder may have the name of a target.
FIND = $(shell find $(1) -mindepth 1 \( -name __pycache__ -o -name '.*cache' \) -prune -o -print 2>/dev/null)
BUILD_FILES := CMakeLists.txt CMakePresets.json $(call FIND,cmake)
ENGINE := $(BUILD_FILES) $(call FIND,engine preload simulate schema experiments systems)
PACKAGE := $(ENGINE) pyproject.toml README.md LICENSE $(call FIND,lab)

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- set-up -----------------------------------------------------------------------------------------------------------
$(DONE)/system: tools/system-packages
	@tools/system-packages
	@mkdir -p $(@D) && touch $@

# What tests compare with, and what they set up: fio, file systems, an MPI, a browser, …
$(DONE)/system-tests: tools/system-packages | $(DONE)/system
	@tools/system-packages tests browser
	@touch $@

$(VENV)/.done-%: tools/environment.py pyproject.toml | $(DONE)/system
	@$(PYTHON) tools/environment.py $*
	@touch $@
# The compiler begins as soon as there is what calls it: one pip at a time makes the environment.
$(VENV)/.done-build: | $(VENV)/.done-compile
$(VENV)/.done-test $(VENV)/.done-docs $(VENV)/.done-release $(VENV)/.done-dev $(VENV)/.done-tidy $(VENV)/.done-fuzz $(VENV)/.done-reframe: | $(VENV)/.done-build

# The package as users get it, not an editable install: the tests see what is shipped.
INSTALL = $(BIN)/python tools/progress.py $(1) build/log/package.txt $(BIN)/python -m pip --disable-pip-version-check \
	--no-input install -v --no-build-isolation --no-compile --no-deps --force-reinstall $(2) .
$(VENV)/.done-package: $(VENV)/.done-build $(PACKAGE)
	@$(call INSTALL,"Building all parts and installing Sonde into $(VENV)",)
	@touch $@

# What a first report needs. MPI, the preload library, the simulator and the command lines of other tools are half of the
# compiler's work: `make build` goes on from here in the same tree.
LATER := $(foreach part,MPI PRELOAD SIMULATOR DIALECTS,--config-settings=cmake.define.SONDE_$(part)=OFF)
$(VENV)/.done-engine: $(VENV)/.done-compile $(PACKAGE)
	@$(call INSTALL,"Building the engine and installing Sonde into $(VENV)",$(LATER))
	@touch $@

# The tests link the objects that the package is made of: one tree, compiled once.
$(DONE)/tests: $(VENV)/.done-package $(call FIND,tests/engine tests/preload tests/simulate bench) | $(DONE)/system-tests
	@$(BIN)/python tools/progress.py "Building the C++ tests" build/log/tests.txt bash -c \
		"cmake -DSONDE_TESTS=ON build/package && cmake --build build/package --target all sonde-tests"
	@touch $@

# --- what people do ---------------------------------------------------------------------------------------------------
.PHONY: build demo test bench docs release clean
build: $(VENV)/.done-package  ## engine, library, simulator and lab, ready as .venv/bin/sonde

# pip waits for the network and works on one core: it installs what Sonde runs with while the engine is compiled.
demo:  ## measures the disk this folder is on and writes a report
	@$(MAKE) --no-print-directory -j2 $(VENV)/.done-build $(VENV)/.done-$(if $(wildcard $(VENV)/.done-package),package,engine)
	@mkdir -p build/demo
	$(BIN)/sonde check build/demo
	@test -e $(VENV)/.done-package || echo "make build adds MPI, the preload library, the simulator and the command lines of IOR, mdtest and md-workbench."

# pip works on one core: the C++ tests are compiled meanwhile.
test: build  ## all tests; the last lines count them and say what was skipped
	@$(MAKE) --no-print-directory -j3 $(VENV)/.done-test $(VENV)/.done-reframe $(DONE)/tests
	@$(BIN)/python tools/test.py build/package $(PYTEST)

bench: $(VENV)/.done-build $(DONE)/dev  ## what Sonde itself costs, beside raw system calls
	@for bench in bench/*.py; do $(BIN)/python $$bench; done

docs: $(VENV)/.done-docs  ## the documentation as a site in build/docs
	@tools/docs

clean:  ## removes build/ and .venv
	rm -rf build $(VENV)

release: $(VENV)/.done-release  ## wheels, engine tarball, sources, list of components and checksums in build/release
	@$(BIN)/python tools/release.py

# --- what developers do -----------------------------------------------------------------------------------------------
.PHONY: check format lint tidy tidy-newest types asan asan-units tsan mutants test-clusters test-storage nightly fuzz
check: $(VENV)/.done-dev $(VENV)/.done-test  ## layout, lint and types of all sources
	@tools/check

format: $(VENV)/.done-dev  ## lays out C++ and Python
	@tools/format

lint: $(VENV)/.done-dev  ## ruff, codespell, bandit and cppcheck
	@tools/check lint

tidy: $(VENV)/.done-tidy $(DONE)/dev  ## clang-tidy over engine, preload and simulate; minutes
	@tools/check tidy

# Configured only: clang-tidy compiles what it reads.
NEWEST ?= 6
tidy-newest: $(VENV)/.done-tidy  ## clang-tidy over the NEWEST (6) C++ files that were changed last
	@mkdir -p build
	@cmake --preset dev >build/dev-configure.log 2>&1 || { cat build/dev-configure.log; exit 1; }
	@$(BIN)/python tools/tidy.py --newest $(NEWEST)

types: $(VENV)/.done-dev $(VENV)/.done-test  ## mypy --strict
	@tools/check types

# A build tree of a preset. Configuring says where each library came from: of interest only when it fails.
TREE = cmake --preset $(1) >build/$(1)-configure.log 2>&1 || { cat build/$(1)-configure.log; exit 1; }; \
	$(PYTHON) tools/progress.py "Building build/$(1)" build/log/$(1).txt cmake --build --preset $(1)
$(DONE)/%: $(VENV)/.done-build $(ENGINE) $(call FIND,tests/engine tests/preload tests/simulate tests/fuzz bench)
	@mkdir -p $(@D)
	@$(call TREE,$*)
	@touch $@

# Tests of the mounted machine are Python's: its program is built like the C++ tests. What a sanitizer finds ends it or
# stands in a file. It is made to look old, or the lab would take it for the newest one of the source tree.
MOUNT = build/$(1)/simulate/sonde-mount
ON_A_MOUNT = @test -x $(MOUNT) || { echo "sonde-mount is not built: libfuse 3.12 or later is missing"; exit 0; }; \
	touch -d @0 $(MOUNT); rm -f build/$(1)/mount.*; export $(2)_OPTIONS=halt_on_error=1:log_path=$(CURDIR)/build/$(1)/mount; \
	SONDE_MOUNT=$(CURDIR)/$(MOUNT) PYTHONPATH=lab $(BIN)/python -m pytest -q tests/together/test_mount.py || wrong=$$?; \
	if compgen -G "build/$(1)/mount.*" >/dev/null; then cat build/$(1)/mount.*; wrong=1; fi; exit $${wrong:-0}

asan: $(DONE)/asan $(VENV)/.done-test  ## C++ tests and the mounted machine under the address and undefined-behavior sanitizers
	ctest --preset asan
	$(call ON_A_MOUNT,asan,ASAN)

# Sanitized objects are linked with the tests that the package tree compiled.
$(DONE)/asan-units: $(DONE)/tests
	@$(call TREE,asan-units)
	@touch $@

asan-units: $(DONE)/asan-units  ## C++ tests with the tested code under these sanitizers
	ctest --preset asan-units -j $(shell nproc)

tsan: $(DONE)/tsan $(VENV)/.done-test  ## C++ tests and the mounted machine under the thread sanitizer
	ctest --preset tsan
	$(call ON_A_MOUNT,tsan,TSAN)

MUTANTS ?=
mutants: $(VENV)/.done-dev  ## changes the sources in small ways: do the tests notice? MUTANTS="--module stats"
	@$(BIN)/python tools/mutants.py $(MUTANTS)

test-clusters: build $(VENV)/.done-test  ## jobs on a real Slurm, which is installed and started for that
	@tools/system-packages clusters
	$(BIN)/python -m pytest -q -m "nightly or not nightly" tests/together/test_slurm.py

test-storage: build $(VENV)/.done-test  ## on real GlusterFS, MooseFS and CephFS, which are installed and started for that
	@tools/system-packages storage
	$(BIN)/python -m pytest -q -m storage tests/storage $(PYTEST)

nightly: $(VENV)/.done-dev  ## what takes longer than .ci/run: each file alone, kills by the hundred, sanitizers, clang-tidy, fuzzing, mutants
	@tools/system-packages arm fuzz simgrid
	@$(MAKE) --no-print-directory $(DONE)/dev
	ctest --preset dev
	PYTHONPATH=lab $(BIN)/python -m pytest -q -m nightly tests
	@if command -v cargo >/dev/null; then cargo install --quiet fsx; else echo "fsx is not tried: there is no cargo"; fi
	PYTHONPATH=lab $(BIN)/python -m pytest -q tests/preload/test_exerciser.py tests/together/test_integrity_on_a_mount.py
	@$(MAKE) --no-print-directory test-storage
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory tsan
	@$(MAKE) --no-print-directory tidy
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory mutants

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.done-fuzz  ## feeds garbage to what reads text from outside, FUZZ_SECONDS each (60); needs clang
	@tools/system-packages fuzz
	@$(MAKE) --no-print-directory $(DONE)/fuzz
	@tools/fuzz build/fuzz $(FUZZ_SECONDS)
