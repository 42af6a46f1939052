# Set-up lives in .venv and happens once; needed beforehand: Python 3.11+ with venv, make, git.
#
#   make demo    a race on the base that comes with the package
#   make test    lint, types and the whole test suite
#   make quick   lint, types and the tests that are quick
#   make check   lint and types only
#   make clean   remove .venv and all caches

VENV := .venv
BIN := $(VENV)/bin
# Holds the folder that the set-up was made in: a moved or copied .venv points at the old place.
READY := $(VENV)/.ready

# The first of these that is 3.11 or newer; `make PYTHON=/path/to/python3` names another.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# Another project's modules must not leak into ours; pyright must not ask the network for newer versions; the tests
# start Python so often that compiled modules must be kept.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PYRIGHT_PYTHON_FORCE_VERSION PYRIGHT_PYTHON_PYLANCE_VERSION
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/$(VENV)/pyright
export PYRIGHT_PYTHON_ENV_DIR := $(CURDIR)/$(VENV)/pyright/node

.PHONY: demo test suite quick quick-suite check lint types browser metamath clean moved

demo: $(READY)
	@$(BIN)/redqueen train demo --run runs/demo

# Types are checked beside the tests, many of which wait for something.
test: lint browser metamath
	@$(MAKE) --no-print-directory -j 2 types suite

suite: $(READY)
	$(BIN)/python -m pytest -n 3 --no-loadscope-reorder

quick: lint
	@$(MAKE) --no-print-directory -j 2 types quick-suite

quick-suite: $(READY)
	$(BIN)/python -m pytest -n 2 --no-loadscope-reorder --quick

check: lint types

lint: $(READY)
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check

types: $(READY)
	$(BIN)/python -m pyright --pythonpath $(BIN)/python

# The page is tested in a real browser: one that is here, or Debian's where we may install it.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; done; \
	get="apt-get install -y -qq --no-install-recommends chromium"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium, in which the page is tested (once)"; \
		DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; \
		{ $$get || { apt-get update -qq && $$get; }; } >/dev/null 2>&1 && exit 0; fi; \
	echo "There is no Chromium and none could be installed: the tests of the page are skipped (Debian: apt install chromium)"

# New theorems are also judged by the program metamath: one that is here, or Debian's where we may install it.
metamath:
	@command -v metamath >/dev/null && exit 0; \
	get="apt-get install -y -qq --no-install-recommends metamath"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing metamath, by which new theorems are verified (once)"; \
		DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; \
		{ $$get || { apt-get update -qq && $$get; }; } >/dev/null 2>&1 && exit 0; fi; \
	echo "There is no metamath and none could be installed: the test that uses it is skipped (Debian: apt install metamath)"

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

ifneq ($(shell [ -x $(BIN)/python ] && [ "$$(cat $(READY) 2>/dev/null)" = "$$(pwd -P)" ] || echo moved),)
$(READY): moved
endif

# The mark goes first and comes back last: an interrupted set-up has none and starts again from nothing.
$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Red Queen needs Python 3.11 or newer, which $(or $(PYTHON),python3) is not; install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments; install its venv package (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "Setting up $(VENV) (once; torch is the large part)"
	@if [ -x $(BIN)/python ] && [ "$$(cat $@ 2>/dev/null)" = "$$(pwd -P)" ]; \
		then rm -f $@; else "$(PYTHON)" -m venv --clear $(VENV); fi
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@pwd -P > $@
