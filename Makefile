# Needs only Python 3.11 to 3.14, make and the package index. All paths are relative, because the checkout's own path may contain spaces.

# The first Python in this list that runs. Whether it exists is not enough: pyenv has a command for every version, even for those that cannot run.
PYTHON ?= $(or $(shell for one in python3.13 python3.12 python3.11 python3.14; do $$one -c 'import ensurepip, venv' 2>/dev/null && echo $$one && break; done),python3.11)
# The conda environment to use: that of environment.yml, if it is active, or another one (make CONDA=/path/to/env). Without conda, make creates .venv.
CONDA ?= $(if $(filter lookuplab,$(CONDA_DEFAULT_ENV)),$(CONDA_PREFIX))
VENV := $(or $(CONDA),.venv)
RUN := $(VENV)/bin/python -m
# If uv is installed, it installs packages in a third of pip's time. But uv does not read pip's settings, so pip is used if they name other indexes. If uv
# fails, pip tries again. pip does not compile the packages (--no-compile), as most of their modules are never imported.
UV = $(shell command -v uv >/dev/null && ! $(RUN) pip config list 2>/dev/null | grep -qE 'index|find-links' \
	&& echo uv pip install --quiet --python $(VENV)/bin/python -c constraints.txt)
PIP := $(RUN) pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# $(call install,PACKAGES,OPTIONS OF UV,OPTIONS OF PIP)
install = $(if $(UV),$(UV) $(1)$(if $(2), $(2)) ||) $(PIP) $(1)$(if $(3), $(3))
# TORCH=cpu or TORCH=cu128, for example, installs this build of torch from PyTorch's own index instead of PyPI's build. It changes no other package.
TORCH ?=
KIT := -e '.[rank,site,widgets]'
# Many containers set this variable. Each of about a hundred processes would then compile all imported packages again, so it is unset.
export PYTHONDONTWRITEBYTECODE :=
JOBS ?=  # how many notebooks or tests run at the same time; by default, one notebook or 1.5 tests for each core

# The folder of lessons without solutions. In the students' bundle, this is notebooks/course. In the full checkout, it is a copy that is made once.
LESSONS := $(if $(wildcard notebooks/course/bundle.py),runs/course/student,notebooks/course)
LESSON ?= lesson0_tokens
# "0" for root, otherwise empty. JupyterLab refuses to run as root unless it is told to, and containers and rented machines often have no other user.
ROOT := $(filter 0,$(shell id -u))
# If ARGS names a port that is in use, JupyterLab stops. By default it would take the next port, to which the user's tunnel does not lead.
PORT = $(if $(findstring --port,$(ARGS)),--ServerApp.port_retries=0)
LAB = $(if $(ROOT),echo "warning: running as root: a notebook may change any file of this machine" >&2;) \
	JUPYTER_PREFER_ENV_PATH=1 $(RUN) jupyterlab $(if $(ROOT),--allow-root)

.PHONY: help reproduce lab course-lab clean

help:  ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\n    \2/p' $(MAKEFILE_LIST)

# Half a percent of the record is 640 rows. If one row in 200 is wrong, 95% of such audits find a wrong row. Each commit draws different rows.
reproduce: $(VENV)/.installed  ## run all notebooks, audit the record, and make figures, the papers' claims with verdicts, and a report; without the record: COLD=1 (an hour)
	@$(RUN) lookuplab reproduce $(if $(COLD),--cold,--audit 0.5%) $(addprefix -j,$(strip $(JOBS)))
	@$(RUN) lookuplab report --profile mini & \
	$(RUN) lookuplab claims --profile mini && if git rev-parse --quiet --verify HEAD >/dev/null 2>&1; \
		then $(RUN) lookuplab verify --profile mini && $(RUN) lookuplab verify --profile published; \
		else echo "no git checkout: there are no committed figures to compare with"; fi; \
	code=$$?; wait $$! && exit $$code

lab: $(VENV)/.installed-lab  ## open the notebooks in JupyterLab; on a machine without a screen: make lab ARGS="--no-browser --port 8899"
	@export JUPYTER_CONFIG_PATH="$(CURDIR)/notebooks/.jupyter"; $(LAB) --notebook-dir=notebooks $(PORT) $(ARGS)

course-lab: $(VENV)/.installed-lab $(LESSONS)  ## open a lesson without solutions in JupyterLab: make course-lab LESSON=lesson1_hallucination
	@export JUPYTER_CONFIG_PATH="$(CURDIR)/notebooks/course/.jupyter"; $(LAB) --notebook-dir=$(LESSONS) --LabApp.default_url=/lab/tree/$(LESSON).ipynb $(ARGS)

clean:  ## remove the virtual environments and the folder runs
	rm -rf -- .venv .venv-vllm runs

$(VENV)/bin/python:
	@[ -z "$(CONDA)" ] || { echo "error: there is no $@: conda env create -f environment.yml && conda activate lookuplab" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null \
		|| { echo "error: $(PYTHON) is not a Python 3.11 to 3.14 with the venv module: install one, or name its path: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV)

# torch is installed first, in a step of its own, because its build may come from another index (TORCH, or pip's settings) than all other packages.
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
