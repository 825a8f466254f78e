# xsift: `make demo` and `make test` do all the set-up they need. `make help` lists the rest.
SHELL := /bin/bash
VENV := .venv
PYTHON := $(VENV)/bin/python
SOURCES := $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.hpp')

.PHONY: help setup build shell demo console console-pictures test test-spark lint format bench sanitize soak fuzz differential sanitize-fast package coverage docs papers release clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(VENV)/.kernels ## Debian packages, .venv, kernels

$(VENV)/.packages: pyproject.toml tools/setup
	@tools/setup $(VENV)
	@touch $@

$(VENV)/.kernels: $(VENV)/.packages setup.py $(SOURCES)
	@tools/build $(VENV)
	@touch $@

build: setup ## compile the kernels after a change

shell: setup ## a shell in which `xsift` can be called
	@echo "xsift is there: xsift match -s examples/data/news.csv examples/data/news     (exit leaves this shell)"
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $${SHELL:-/bin/bash} -i

demo: setup ## the main job on generated data
	@$(PYTHON) -m xsift.cli demo
	@echo "Call xsift yourself: $(VENV)/bin/xsift match -s examples/data/news.csv examples/data/news, or make shell"
	@echo "See it at work in a browser, with data in it: make console"

console: setup ## the console of the service, with data in it
	@$(PYTHON) -m tools.console_demo

console-pictures: setup ## take the pictures of docs/console.md
	@$(PYTHON) -m tools.console_pictures

test: setup ## every test
	@$(PYTHON) -m pytest

test-spark: setup ## the tests on Spark alone
	@$(PYTHON) -m pytest tests/spark

lint: setup ## ruff, mypy --strict, and the stubs of the kernels
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check --quiet . || { echo "make format puts the format right"; exit 1; }
	@$(PYTHON) -m mypy
	@tools/check-stubs $(PYTHON)

format: setup ## put the format right
	@$(PYTHON) -m ruff check --fix . && $(PYTHON) -m ruff format .
	@$(PYTHON) tools/wrap-docs *.md docs/*.md docs/*/*.md examples/*.md

bench: setup ## the benchmarks, beside each other in one run
	@$(PYTHON) -m benchmarks

PAPERS = xtrie afilter predicate ifist bfilter peers
MINUTES_EACH = 240

papers: setup ## the papers' experiments at full scale, kept in results/ and docs/; quiet machine, MINUTES_EACH=30 for what fits
	$(VENV)/bin/xsift experiment run $(PAPERS) --budget $(MINUTES_EACH) --output runs
	$(VENV)/bin/xsift experiment keep $(PAPERS:%=runs/%)

sanitize: setup ## the tests on kernels built with address and undefined-behaviour sanitizers
	@tools/sanitize $(VENV)

soak: setup ## a stream that runs for an hour while everything changes; SOAK_SECONDS=600 for ten minutes
	@$(PYTHON) -m benchmarks.soak --seconds $(or $(SOAK_SECONDS),3600)

fuzz: setup ## fuzz the scanner beside libexpat, 5 minutes each way; SECONDS_EACH=3600 for longer
	@tools/fuzz $(VENV) $(or $(SECONDS_EACH),300)

package: setup ## source distribution and wheel in dist/, tried in an environment of their own
	@tools/package $(VENV)

coverage: setup ## how much of the Python files the tests run; KIND=kernels for the kernels, with sanitizers
	@tools/coverage $(VENV) $(or $(KIND),python)

docs: setup ## the docs site, in build/site; no network is needed
	@tools/docs/build $(VENV)

release: setup ## everything of a release but the upload; the tag is the version of src/xsift/__init__.py
	@tools/release $(VENV)

differential: setup ## engines beside the reference, expressions beside lxml, 5 minutes each; SECONDS_EACH=3600 for longer
	@$(PYTHON) -m tests.engines.differential --seconds $(or $(SECONDS_EACH),300)
	@$(PYTHON) -m tests.evaluation.differential --seconds $(or $(SECONDS_EACH),300)

sanitize-fast: setup ## the kernels' tests with sanitizers, with the floor for kernels, then a minute each of random documents, expressions, files and engines
	@tools/coverage $(VENV) kernels
	@tools/sanitize $(VENV) --fuzz 60 $(SEED)

clean: ## what was built
	rm -rf $(VENV) build dist src/*.egg-info
	find src -name '*.so' -delete
