# Needs Python 3.11, make and the package index; nothing else. Paths are relative, so the checkout may lie under a folder with spaces.
PYTHON ?= python3.11
VENV := .venv
RUN := $(VENV)/bin/python -m
PIP := $(RUN) pip --disable-pip-version-check install --quiet -c constraints.txt
JOBS ?= 2

.PHONY: help reproduce test lint lab clean

help:  ## what there is
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1 \2/p' Makefile

reproduce: $(VENV)/.installed  ## every notebook in the mini profile: figures/mini/, what the papers' claims come to, and the report
	@$(RUN) lookuplab reproduce --profile mini -j $(JOBS)
	@$(RUN) lookuplab claims --profile mini
	@$(RUN) lookuplab report --profile mini

test: $(VENV)/.installed-test  ## the tests
	@OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(RUN) pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

lint: $(VENV)/.installed-lint  ## what ruff says about the code and its format
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .

lab: $(VENV)/.installed  ## JupyterLab on the notebooks
	@JUPYTER_PREFER_ENV_PATH=1 $(RUN) jupyterlab --notebook-dir=notebooks

clean:  ## remove the virtual environment and what runs left behind
	rm -rf -- $(VENV) runs

$(VENV)/bin/python:
	@command -v "$(PYTHON)" >/dev/null || { echo "error: no $(PYTHON) here: install Python 3.11, or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "error: $(PYTHON) is not Python 3.11: say where that is: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV)

# torch first and by itself: whoever has set up pip for another build of it (CPU, another CUDA) gets that one.
$(VENV)/.installed: pyproject.toml constraints.txt data/python-sources.txt | $(VENV)/bin/python
	@echo "installing into $(VENV) (a few minutes, once)"
	@$(PIP) torch==2.13.0
	@$(PIP) -e .
	@$(RUN) lookuplab data get python-sources >/dev/null
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.installed-lint: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(PIP) ruff
	@touch $@
