PYTHON ?= python3
BIN     := .venv/bin
STAMP   := .venv/.installed
CODE    := src tests experiments benchmarks examples docs hatch_build.py
# One BLAS thread a worker. Bytecode is kept: workers and the commands that tests start share it.
PYTEST  := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal
NAME    :=
PARTS   :=
QUICK   :=
MINUTES := 30
N       := 200
SEED    := 0
OLD_PYTHON := python3.6

.PHONY: help install demo quick test lint slow docs browser torch cluster bench reproduce soak mutants check-all clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
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

test: $(STAMP) ## before you commit: lint beside all tests and doctests; three minutes on two cores
	@mkdir -p build
	@$(MAKE) --no-print-directory lint >build/lint.log 2>&1 & lint=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$lint || { cat build/lint.log; echo 'lint failed: see the lines above'; exit 1; }; \
	echo 'lint passed'; exit $$tests

lint: $(STAMP) ## style, types, and which layer imports which
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: $(STAMP) ## statistics in standard errors, long runs, new random examples; half an hour
	$(BIN)/python -m pytest -m slow --ignore-glob='tests/*/test_speed.py'
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=default

docs: ## the site in docs/_build/html; a warning is an error; links and snippets are tested
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet -e '.[test,docs]'
	.venv-docs/bin/python -m sphinx -W --keep-going -q docs docs/_build/html
	PENCHANT_SITE=docs/_build/html .venv-docs/bin/python -m pytest -m 'slow or not slow' tests/docs

browser: $(STAMP) ## a study in a real Chromium (CHROMIUM=path) and on PostgreSQL
torch: $(STAMP) ## the card's contract by torch's CPU build, in an environment of its own
cluster: $(STAMP) ## users in shards, here and on Ray, in an environment of its own
browser torch cluster:
	$(BIN)/python tests/check_all.py $@

bench: $(STAMP) ## against installed peers, half an hour: BENCHMARKS.md; PARTS="gp people" prints, QUICK=1
	$(BIN)/python benchmarks/run.py $(PARTS) $(if $(QUICK),--quick) --old-python $(OLD_PYTHON)

reproduce: $(STAMP) ## an experiment: NAME=xpgp, or NAME=all; QUICK=1 in small; without NAME the list
	$(BIN)/python -m experiments $(NAME) $(if $(QUICK),--quick)

soak: $(STAMP) ## random data through every model and command for MINUTES=30; prints a violation's seed
	$(BIN)/python tests/soak.py --minutes $(MINUTES)

mutants: $(STAMP) ## N=200 small changes of the core, drawn by SEED; lists those no test notices; hours
	$(BIN)/python tests/mutants.py -n $(N) --seed $(SEED)

check-all: $(STAMP) ## all checks and a table of results, an hour; PARTS="lowest torch": some of them
	$(BIN)/python tests/check_all.py $(PARTS)

clean: ## remove environments, caches and everything built
	rm -rf .venv .venv-* build dist docs/_build docs/api docs/gallery docs/project .*_cache
