PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
NAME   :=
PARTS  :=
QUICK  :=
MINUTES := 30
N      := 200
SEED   := 0
OLD_PYTHON := python3.6
TORCH  := 2.13.0
CODE   := src tests experiments benchmarks examples docs hatch_build.py
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

.PHONY: help install demo quick test lint slow speed soak mutants bench reproduce pictures docs browser torch cluster lowest release-check check-all clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[test]'
	touch $(STAMP)

install: $(STAMP) ## install the package and what its tests need into .venv

demo: $(STAMP) ## a simulated study: ranking, communities, next questions, a report
	$(BIN)/penchant demo

quick: $(STAMP) ## while you write: style, layers, and the engine's tests; under a minute
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports
	$(PYTEST) tests/gp tests/kernels tests/likelihoods tests/ask

test: lint ## before you commit: lint, types, layers, all tests and doctests
	$(PYTEST)

lint: $(STAMP) ## style, types, and which layer imports which
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: $(STAMP) ## statistics in standard errors, long runs, new random examples; half an hour
	$(BIN)/python -m pytest -m slow --ignore-glob='tests/*/test_speed.py'
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=default

speed: $(STAMP) ## ratios of times, how time grows, every benchmark in small; on a quiet machine
	$(BIN)/python -m pytest -m slow tests/*/test_speed.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/run.py --quick --old-python $(OLD_PYTHON)

soak: $(STAMP) ## random data through every model and command for MINUTES=30; prints a violation's seed
	$(BIN)/python tests/soak.py --minutes $(MINUTES)

mutants: $(STAMP) ## N=200 small changes of the core, drawn by SEED; lists those no test notices; hours
	$(BIN)/python tests/mutants.py -n $(N) --seed $(SEED)

# RLScore needs an OLD_PYTHON
bench: $(STAMP) ## against installed peers, half an hour: BENCHMARKS.md; PARTS="gp people" prints, QUICK=1
	$(BIN)/python benchmarks/run.py $(PARTS) $(if $(QUICK),--quick) --old-python $(OLD_PYTHON)

reproduce: $(STAMP) ## an experiment: NAME=xpgp, or NAME=all; QUICK=1 in small; without NAME the list
	$(BIN)/python -m experiments $(NAME) $(if $(QUICK),--quick)

pictures: $(STAMP) ## the pictures of README and docs, drawn by the examples
	$(BIN)/python examples/pictures.py

docs: ## the site in docs/_build/html; a warning is an error; links and snippets are tested
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet -e '.[test,docs]'
	.venv-docs/bin/python -m sphinx -W --keep-going -q docs docs/_build/html
	PENCHANT_SITE=docs/_build/html .venv-docs/bin/python -m pytest -m 'slow or not slow' tests/docs

browser: $(STAMP) ## a study in a real Chromium (CHROMIUM=path), on PostgreSQL, and how soon a vote is in
	$(BIN)/python -m pip install --quiet -e '.[test,browser]'
	$(BIN)/python -m pytest --ignore=src tests/browser
	$(BIN)/python -m pytest --ignore=src tests/study
	$(BIN)/python benchmarks/study.py first

torch: ## the matrices by torch's CPU build, beside SciPy's
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet 'torch==$(TORCH)' -e '.[test]'
	.venv-torch/bin/python -m pytest tests/gpu tests/gp tests/contract/test_kernels.py

cluster: ## users in shards, here and on Ray; the same results after a worker died
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/python -m pip install --quiet -e '.[test,cluster]'
	.venv-cluster/bin/python -m pytest -m 'slow or not slow' tests/engines

lowest: $(STAMP) ## all tests with the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct -e '.[test]'
	.venv-lowest/bin/python -m pytest

release-check: $(STAMP) ## wheel and source archive, each installed alone in a clean environment and used
	$(BIN)/python tests/release.py

check-all: $(STAMP) ## every target above that tests something, and a table of what held; an hour
	$(BIN)/python tests/check_all.py $(PARTS)

clean: ## remove environments, caches and what was built
	rm -rf .venv-lowest dist $(VENV) .venv-bench docs/_build docs/api docs/gallery docs/project .venv-docs .venv-torch .venv-cluster .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
