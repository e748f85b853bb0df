# Needs Python 3.11 to 3.14, make and the package index; nothing else. Paths are relative, so the checkout may lie under a folder with spaces.
# The newest that runs: pyenv has a command for every version, also for those that are not chosen.
PYTHON ?= $(or $(shell for one in python3.13 python3.12 python3.11 python3.14; do $$one -c 'import ensurepip, venv' 2>/dev/null && echo $$one && break; done),python3.11)
# The environment of environment.yml, if it is active; make CONDA=/path/to/env uses another one. Without conda, make creates .venv.
CONDA ?= $(if $(filter lookuplab,$(CONDA_DEFAULT_ENV)),$(CONDA_PREFIX))
VENV := $(or $(CONDA),.venv)
RUN := $(VENV)/bin/python -m
# uv, where there is one, takes a third of pip's time. But uv reads none of pip's settings, so whoever has told pip of other
# places keeps pip. What uv cannot install, pip tries again. Neither compiles what may never be imported.
UV = $(shell command -v uv >/dev/null && ! $(RUN) pip config list 2>/dev/null | grep -qE 'index|find-links' \
	&& echo uv pip install --quiet --python $(VENV)/bin/python -c constraints.txt)
PIP := $(RUN) pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# Packages, then options that only uv knows, then options that only pip knows.
install = $(if $(UV),$(UV) $(1)$(if $(2), $(2)) ||) $(PIP) $(1)$(if $(3), $(3))
# TORCH=cpu or TORCH=cu128, for example, takes PyTorch's own build instead of PyPI's; the other packages come from where they always do.
TORCH ?=
KIT := -e '.[rank,site,widgets]'
# Where this is set, as in many containers, each of a hundred processes would compile all packages again.
export PYTHONDONTWRITEBYTECODE :=
JOBS ?=  # at once: by default as many notebooks as there are cores, and one and a half times as many tests

# The lessons as students get them: in the bundle, the lessons; in the full checkout, a copy that is made once and kept.
LESSONS := $(if $(wildcard notebooks/course/bundle.py),runs/course/student,notebooks/course)
LESSON ?= lesson0_tokens
# Containers and rented machines often have no user but root.
ROOT := $(filter 0,$(shell id -u))
# If the port that ARGS names is taken, JupyterLab stops instead of taking the next, to which no tunnel leads.
PORT = $(if $(findstring --port,$(ARGS)),--ServerApp.port_retries=0)
LAB = $(if $(ROOT),echo "warning: running as root: a notebook may change any file of this machine" >&2;) \
	JUPYTER_PREFER_ENV_PATH=1 $(RUN) jupyterlab $(if $(ROOT),--allow-root)

.PHONY: help reproduce lab course-lab clean

help:  ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\n    \2/p' $(MAKEFILE_LIST)

# Half a percent of the record is 640 rows: if one row in 200 is wrong, 95% of such audits find it. Each commit draws other rows.
reproduce: $(VENV)/.installed  ## every notebook in the mini profile: figures/mini/, an audit, the verdicts on the papers' claims, the report; COLD=1: without the record, about an hour
	@$(RUN) lookuplab reproduce --profile mini $(if $(COLD),--cold,--audit 0.5%) $(addprefix -j,$(strip $(JOBS)))
	@$(RUN) lookuplab reproduce --profile published $(addprefix -j,$(strip $(JOBS)))
	@$(RUN) lookuplab report --profile mini & \
	$(RUN) lookuplab claims --profile mini && if git rev-parse --quiet --verify HEAD >/dev/null 2>&1; \
		then $(RUN) lookuplab verify --profile mini && $(RUN) lookuplab verify --profile published; \
		else echo "no git checkout: there are no committed figures to compare with"; fi; \
	code=$$?; wait $$! && exit $$code

lab: $(VENV)/.installed-lab  ## JupyterLab on the notebooks; on a machine without a screen: make lab ARGS="--no-browser --port 8899"
	@export JUPYTER_CONFIG_PATH="$(CURDIR)/notebooks/.jupyter"; $(LAB) --notebook-dir=notebooks $(PORT) $(ARGS)

course-lab: $(VENV)/.installed-lab $(LESSONS)  ## JupyterLab on a lesson without solutions: make course-lab LESSON=lesson1_hallucination
	@export JUPYTER_CONFIG_PATH="$(CURDIR)/notebooks/course/.jupyter"; $(LAB) --notebook-dir=$(LESSONS) --LabApp.default_url=/lab/tree/$(LESSON).ipynb $(ARGS)

clean:  ## remove the virtual environments and what runs left behind
	rm -rf -- .venv .venv-vllm runs

$(VENV)/bin/python:
	@[ -z "$(CONDA)" ] || { echo "error: there is no $@: conda env create -f environment.yml && conda activate lookuplab" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null \
		|| { echo "error: $(PYTHON) is not a Python 3.11 to 3.14 with the venv module: install one, or name its path: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV)

# torch first and by itself: whoever has set up pip for another build of it (CPU, another CUDA) gets that one.
$(VENV)/.installed: pyproject.toml constraints.txt data/python-sources.txt | $(VENV)/bin/python
	@echo "installing torch into $(VENV) (1 of 2; a few minutes, once)"
	@$(call install,torch==2.13.0,$(TORCH:%=--torch-backend=%),$(TORCH:%=--extra-index-url https://download.pytorch.org/whl/%))
	@echo "installing the other packages (2 of 2)"
	@$(call install,$(KIT))
	@$(RUN) lookuplab data get python-sources >/dev/null
	@touch $@

$(VENV)/.installed-lab: $(VENV)/.installed
	@echo "installing JupyterLab into $(VENV) (once)"
	@$(call install,-e '.[lab]')
	@touch $@

-include tests/checkout.mk
