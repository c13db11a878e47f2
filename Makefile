# Two commands for a fresh machine with Python, venv and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Processes that share the tests; each keeps the libraries' own threads to one.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := -m pytest --numprocesses $(WORKERS) --no-loadscope-reorder
# What a plain install must do, without Torch, Open3D, evo and Chromium: every command, a whole run, the core.
CORE_TESTS := tests/cli tests/fbp tests/geometry tests/test_config.py tests/test_readme.py

.PHONY: demo test test-core lint clean

# Installed again whenever the dependencies change.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable . --constraint constraints.txt
	touch $@

$(VENV)/.installed-all: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[formats,torch,viewer,rerun,cluster,dev]' --constraint constraints.txt
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/demo.sh

test: $(VENV)/.installed-all
	$(ONE_THREAD) $(BIN)/python $(PYTEST)

$(VENV)-core/.installed: pyproject.toml constraints.txt
	test -x $(VENV)-core/bin/python || $(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/python -m pip install --quiet --editable . hypothesis pytest pytest-xdist --constraint constraints.txt
	touch $@

test-core: $(VENV)-core/.installed
	$(ONE_THREAD) $(VENV)-core/bin/python $(PYTEST) $(CORE_TESTS)

lint: $(VENV)/.installed-all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) $(VENV)-core build dist demo
