# Every target builds its own virtual environment from a bare Python 3.11.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: setup demo test test-torch test-slow check bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truesim needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# The demo needs no developer packages: it takes the environment of `setup` if there is one, else a smaller one.
demo:
	test -x $(BIN)/truesim || { $(PYTHON) -m venv $(VENV) && $(PIP) install --quiet --constraint constraints.txt --editable '.[viewer]'; }
	$(BIN)/truesim demo --out out/demo

test: setup
	$(BIN)/python -m pytest -n 2

test-torch: setup
	$(PIP) install --quiet --constraint constraints.txt --editable '.[torch]'
	$(BIN)/python -m pytest tests/bridges/torch

test-slow: setup
	$(BIN)/python -m pytest -m slow

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	mkdir -p out
	$(BIN)/python -m benchmarks --page docs/benchmarks.md --out out/benchmarks.json

docs: setup
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python docs/build.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/site

clean:
	rm -rf $(VENV) out
