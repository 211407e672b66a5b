PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PARTS  :=
MINUTES := 30
N      := 200
SEED   := 0
OLD_PYTHON := python3.6
TORCH  := 2.13.0

.PHONY: install demo test lint types layers pytest slow speed properties statistics soak mutants study study-bench browser torch cluster bench bench-quick scaling pictures docs lowest release-check check-all clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[test]'
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/penchant demo

test: lint types layers pytest

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples docs hatch_build.py
	$(BIN)/ruff format --check src tests benchmarks examples docs hatch_build.py

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

# a file of tests to each core in turn, and one thread of BLAS a core
pytest: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

# calibration and coverage, in standard errors: about ten minutes
statistics: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/statistical

# new random examples for every property; `make test` repeats the same ones
properties: $(STAMP)
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=default

# every other test that is too long for `make test`
slow: $(STAMP)
	$(BIN)/python -m pytest -m slow --ignore=tests/statistical --ignore-glob='tests/*/test_speed.py'

# what an operation may cost, as a multiple of another: on a quiet machine
speed: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/*/test_speed.py

# random data through every model and command for MINUTES; prints the seed of a violation
soak: $(STAMP)
	$(BIN)/python tests/soak.py --minutes $(MINUTES)

# N small changes of the core, drawn by SEED: lists those that no test notices. Hours, not minutes
mutants: $(STAMP)
	$(BIN)/python tests/mutants.py -n $(N) --seed $(SEED)

# a study with simulated participants, served at 127.0.0.1
study: $(STAMP)
	$(BIN)/penchant study demo

# matrices by torch, its CPU build, beside SciPy's: both keep to the same contract
torch:
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet 'torch==$(TORCH)' -e '.[test]'
	.venv-torch/bin/python -m pytest tests/gpu tests/gp tests/contract/test_kernels.py

# users in shards, here and on Ray: the same results, also after a worker died
cluster:
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/python -m pip install --quiet -e '.[test,cluster]'
	.venv-cluster/bin/python -m pytest -m 'slow or not slow' tests/engines

# answers a second while a study's model learns; people at once against one at a time
study-bench: $(STAMP)
	$(BIN)/python benchmarks/study.py load
	$(BIN)/python benchmarks/study.py crowd

# a study in a real Chromium (CHROMIUM=path), its store on PostgreSQL, and how soon a first vote is in
browser: $(STAMP)
	$(BIN)/python -m pip install --quiet -e '.[test,browser]'
	$(BIN)/python -m pytest --ignore=src tests/browser
	$(BIN)/python -m pytest --ignore=src tests/study
	$(BIN)/python benchmarks/study.py first

# against installed peers, about half an hour: writes BENCHMARKS.md.
# PARTS="gp people" prints these parts alone; RLScore needs an OLD_PYTHON
bench: $(STAMP)
	$(BIN)/python benchmarks/run.py $(PARTS) --old-python $(OLD_PYTHON)

# the same in small, to see that every part still runs; writes nothing
bench-quick: $(STAMP)
	$(BIN)/python benchmarks/run.py $(PARTS) --quick --old-python $(OLD_PYTHON)

# exponents of time in items, comparisons, users and votes; fails when one is exceeded
scaling: $(STAMP)
	$(BIN)/python benchmarks/scaling.py

# the pictures of README and docs, drawn by the examples
pictures: $(STAMP)
	$(BIN)/python examples/pictures.py

# the site in docs/_build/html: a warning is an error, then links, snippets and pages are tested
docs:
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet -e '.[test,docs]'
	.venv-docs/bin/python -m sphinx -W --keep-going -q docs docs/_build/html
	PENCHANT_SITE=docs/_build/html .venv-docs/bin/python -m pytest -m 'slow or not slow' tests/docs

# all tests with the oldest versions that pyproject.toml allows
lowest: $(STAMP)
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct -e '.[test]'
	.venv-lowest/bin/python -m pytest

# wheel and source archive, each installed alone in a clean environment and used
release-check: $(STAMP)
	$(BIN)/python tests/release.py

# every target above that tests something, about an hour, and a table of what held
check-all: $(STAMP)
	$(BIN)/python tests/check_all.py $(PARTS)

clean:
	rm -rf .venv-lowest dist $(VENV) .venv-bench docs/_build docs/api docs/gallery docs/project .venv-docs .venv-torch .venv-cluster .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
