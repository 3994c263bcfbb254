# `make` lists the targets. Everything is installed into .venv, nothing outside it.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

run = $(if $1,$(foreach script,$1,echo $(script) && $(BIN)/python $(script) &&) true,echo Nothing to run yet.)

.PHONY: help setup demo test lint check docs bench papers clean

help: ## list the targets (the default)
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 9

setup: $(STAMP) ## make .venv and install hplus in it with every extra

$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"hplus needs Python 3.11 or newer and $(PYTHON) is %d.%d: name a newer one with make PYTHON=..." \
	% sys.version_info[:2])'
	@echo "Installing hplus into .venv: a few minutes the first time, nothing to do after that."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[all,dev,docs]'
	@touch $@

demo: setup ## learn from bundled data and write a report into the folder demo/
	$(BIN)/hplus demo

test: setup ## run all tests, on two cores
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: setup ## check format, lint, types and the import contract
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## lint and test, what CI runs; prints the five longest files
	@echo "The five longest files:"
	@find src tests -name '*.py' -exec wc -l {} + | grep -v ' total$$' | sort -rn | head -5

docs: setup ## build the site in docs/_build/html
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going docs docs/_build/html

bench: setup ## run every script in benchmarks/ (long)
	$(BIN)/python benchmarks/run.py $(if $(DATA),--data $(DATA))

papers: setup ## run every experiment in papers/ (long)
	@$(call run,$(wildcard papers/[a-z]*.py papers/*/run.py))

clean: ## remove .venv, caches and everything that was generated
	rm -rf .venv demo build dist docs/_build docs/generated docs/auto_examples .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -exec rm -rf {} +
