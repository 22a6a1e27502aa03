# SPDX-License-Identifier: Apache-2.0
# The two commands: `make demo` and `make test`. Everything else is CMake: see CMakePresets.json and `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PRESET ?= release
BUILD  := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
JOBS   ?= $(shell nproc)
# ctest's unit is half a processor: an end-to-end test, which waits most of its time, counts one; what computes counts two
TEST_JOBS = $(shell echo $$((2 * $(JOBS))))

.PHONY: help setup setup-tests build demo dense-demo test numeric parity chaos fuzz sanitize sanitize-quick cuda-check trainer-bundle install format check clean bundle

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

setup:  ## what a fresh Debian 12 needs to build: packages, PyTorch, Node
	@deploy/setup.sh

setup-tests:
	@deploy/setup.sh --tests

build: setup  ## the programs, in build/bin
	@deploy/build.sh $(PRESET) $(JOBS) programs

demo: build  ## train a projection-sharing table on the embedded images (DATA=folder: on a tree of images)
	@BUILD=$(BUILD) deploy/demo.sh $(if $(DATA),--data "$(DATA)")

dense-demo: build  ## train segmenters and detectors on drawn scenes, with attention and without (20 minutes each on 2 cores; TASK=detection: one of them)
	@for task in $(or $(TASK),segmentation detection); do BUILD=$(BUILD) deploy/demo.sh --sweep sweeps/demo/$$task.yaml || exit; done

test: setup-tests  ## build and run every test
	@deploy/build.sh $(PRESET) $(JOBS)
	@ctest --test-dir $(BUILD) -j $(TEST_JOBS) --output-on-failure --no-tests=error

chaos: setup-tests  ## kill, stop, cut, fill and lock everything KILLS times, then judge what is stored (KILLS=1000 SEED=1; FLEET=10: with TLS)
	@deploy/build.sh $(PRESET) $(JOBS)
	@ABLATE_BIN=$(CURDIR)/$(BUILD)/bin python3 tests/chaos/chaos.py --train --kills $(or $(KILLS),200) --seed $(or $(SEED),1) \
	  $(if $(FLEET),--fleet $(FLEET))

fuzz:  ## read made-up bytes for SECONDS (60) with each target, or with TARGET alone; what breaks one is kept and said
	@deploy/setup.sh --fuzz --no-torch --no-web
	@deploy/build.sh fuzz $(JOBS) fuzz_reader
	@tests/fuzz/fuzz.sh "$(or $(SECONDS),60)" $(TARGET)

numeric: setup-tests  ## run the tests that compute in LibTorch as on other processors, as far as this one can
	@deploy/build.sh $(PRESET) $(JOBS)
	@deploy/numeric.sh $(BUILD)

parity: setup-tests  ## compare the models of the papers' sizes with timm as well (a quarter of an hour, 10 GB of files)
	@deploy/build.sh $(PRESET) $(JOBS) models_large_parity_test
	@ctest --test-dir $(BUILD) -C parity_large -L parity_large --output-on-failure --no-tests=error

sanitize: setup-tests  ## tests under the address, undefined-behaviour and thread sanitizers
	@deploy/build.sh asan $(JOBS)
	@ctest --preset asan -j $(TEST_JOBS)
	@deploy/build.sh tsan $(JOBS) service_tests
	@ctest --preset tsan -j $(TEST_JOBS)

sanitize-quick: setup-tests  ## of these the service's under the address and undefined-behaviour sanitizers (quicker)
	@deploy/build.sh asan $(JOBS) service_tests
	@ctest --preset asan -L '^service$$' -j $(TEST_JOBS) --no-tests=error

cuda-check:  ## build the trainer against a CUDA wheel of PyTorch, with NCCL, on a machine without a GPU (5 GB; VERSION=2.12.0)
	@deploy/setup.sh --no-torch --no-web
	@deploy/cuda-check.sh $(VERSION)

bundle: build  ## one archive with worker, trainer and their libraries, for machines that have nothing installed
	@mkdir -p out && cd out && ../$(BUILD)/bin/ablate bundle --force

trainer-bundle: setup  ## one tarball from which the trainer builds on a machine with PyTorch, a compiler and CMake alone
	@deploy/trainer-bundle.sh

install:  ## into PREFIX (default: out/ablate), relocatable; builds first what is not built, and asks for no network otherwise
	@[ -f $(BUILD)/build.ninja ] || $(MAKE) build
	@cmake --build $(BUILD) -j $(JOBS) --target programs
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),out/ablate)

format:  ## clang-format over the sources
	@git ls-files '*.cc' '*.h' | xargs clang-format-16 -i

check:  ## formatting and the direction of includes, as CI checks them
	@.ci/check

clean:  ## remove what was built (not what was set up)
	@rm -rf build build-*/
