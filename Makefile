# Needs Python 3.11, 3.12 or 3.13, make and the package index; nothing else. Paths are relative, so the checkout may lie under a folder with spaces.
# The newest that runs: pyenv has a command for every version, also for those that are not chosen.
PYTHON ?= $(or $(shell for one in python3.13 python3.12 python3.11; do $$one -c 'import ensurepip, venv' 2>/dev/null && echo $$one && break; done),python3.11)
VENV := .venv
RUN := $(VENV)/bin/python -m
PIP := $(RUN) pip --disable-pip-version-check install --quiet -c constraints.txt
JOBS ?=  # notebooks or tests at once: by default as many as there are cores

# The lessons as students get them: in the bundle, the lessons; in the full checkout, a copy that is made once and kept.
LESSONS := $(if $(wildcard notebooks/course/bundle.py),runs/course/student,notebooks/course)

.PHONY: help reproduce test lint mutants lab course course-lab clean

help:  ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1 \2/p' Makefile

reproduce: $(VENV)/.installed  ## every notebook in the mini profile: figures/mini/, an audit, what the papers' claims come to, the report; COLD=1: without the record, about an hour
	@$(RUN) lookuplab reproduce --profile mini $(if $(COLD),--cold,--audit 2%) $(addprefix -j,$(strip $(JOBS)))
	@$(RUN) lookuplab claims --profile mini
	@$(RUN) lookuplab report --profile mini
	@if git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then $(RUN) lookuplab verify --profile mini; \
		else echo "no git checkout: there are no committed figures to compare with"; fi

test: $(VENV)/.installed-test  ## the tests
	@OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(RUN) pytest -n $(or $(strip $(JOBS)),logical) --dist worksteal $(PYTEST_ARGS)

lint: $(VENV)/.installed-test  ## checks of code, format, types and spelling
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy lib/lookuplab data/recipes
	@$(RUN) codespell_lib lib data/recipes docs notebooks tests *.md

# In a copy of the checkout, which takes the last commit.
mutants: $(VENV)/.installed-mutants  ## which changes of the lines of a package that changed since BASE no test notices: make mutants ROOM=scoring BASE=HEAD~5 SAMPLE=100
	@rm -rf runs/mutants && git clone --quiet . runs/mutants
	@cd runs/mutants && export PATH="$(CURDIR)/$(VENV)/bin:$$PATH" PYTHONPATH="$$PWD/lib:$$PWD/data" LOOKUPLAB_HOME="$$PWD" \
		&& sed 's|ROOM|$(ROOM)|; s|BASE|$(BASE)|' tests/mutants.toml >mutants.toml \
		&& cosmic-ray init mutants.toml mutants.sqlite \
		&& cr-filter-operators mutants.sqlite mutants.toml \
		&& cr-filter-git --config mutants.toml mutants.sqlite \
		&& python tests/mutants.py mutants.sqlite --size $(or $(SAMPLE),100) \
		&& cosmic-ray exec mutants.toml mutants.sqlite \
		&& cr-report --surviving-only --show-diff mutants.sqlite

lab: $(VENV)/.installed  ## JupyterLab on the notebooks
	@JUPYTER_PREFER_ENV_PATH=1 $(RUN) jupyterlab --notebook-dir=notebooks

course: $(VENV)/.installed-course  ## the student bundle, without solutions and hidden tests: runs/course/lookuplab-course.zip
	@$(VENV)/bin/python notebooks/course/bundle.py

course-lab: $(VENV)/.installed $(LESSONS)  ## JupyterLab on the lessons without solutions
	@JUPYTER_PREFER_ENV_PATH=1 $(RUN) jupyterlab --notebook-dir=$(LESSONS)

runs/course/student: | $(VENV)/.installed-course
	@$(VENV)/bin/python notebooks/course/bundle.py
	@cp -R runs/course/release/course $@

clean:  ## remove the virtual environment and what runs left behind
	rm -rf -- $(VENV) runs

$(VENV)/bin/python:
	@"$(PYTHON)" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
		|| { echo "error: $(PYTHON) is no Python 3.11, 3.12 or 3.13 with the venv module: install one, or say where it is: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV)

# torch first and by itself: whoever has set up pip for another build of it (CPU, another CUDA) gets that one.
$(VENV)/.installed: pyproject.toml constraints.txt data/python-sources.txt | $(VENV)/bin/python
	@echo "installing into $(VENV) (a few minutes, once)"
	@$(PIP) torch==2.13.0
	@$(PIP) -e '.[rank,remote,site,widgets]'
	@$(RUN) lookuplab data get python-sources >/dev/null
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.installed-mutants: $(VENV)/.installed-test
	@$(PIP) -e '.[mutants]'
	@touch $@

$(VENV)/.installed-course: $(VENV)/.installed
	@$(PIP) -e '.[course]'
	@touch $@
