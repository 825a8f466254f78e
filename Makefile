# xsift: `make demo` and `make test` do all the set-up they need. `make help` lists the rest.
SHELL := /bin/bash
VENV := .venv
PYTHON := $(VENV)/bin/python
SOURCES := $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.hpp')

.PHONY: help setup build shell demo console console-pictures test test-spark lint format bench sanitize soak fuzz fuzz-briefly clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

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

lint: setup ## ruff and mypy --strict
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check --quiet . || { echo "make format puts the format right"; exit 1; }
	@$(PYTHON) -m mypy

format: setup ## put the format right
	@$(PYTHON) -m ruff check --fix . && $(PYTHON) -m ruff format .

bench: setup ## the benchmarks, beside each other in one run
	@$(PYTHON) -m benchmarks

sanitize: setup ## the tests on kernels built with address and undefined-behaviour sanitizers
	@tools/sanitize $(VENV)

soak: setup ## a stream that runs for an hour while everything changes; SOAK_SECONDS=600 for ten minutes
	@$(PYTHON) -m benchmarks.soak --seconds $(or $(SOAK_SECONDS),3600)

fuzz: setup ## fuzz the scanner beside libexpat, 5 minutes each way; SECONDS_EACH=3600 for longer
	@tools/fuzz $(VENV) $(or $(SECONDS_EACH),300)

fuzz-briefly: setup ## a minute of documents, expressions and saved files, with sanitizers; what CI does
	@tools/sanitize $(VENV) --fuzz 60

clean: ## what was built
	rm -rf $(VENV) build dist src/*.egg-info
	find src -name '*.so' -delete
