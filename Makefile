# Every target does its own set-up, in .venv, through constraints.txt.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
DEV    := train,serve,export,baselines,plot,postgres,heic,ray,tables
EXTRAS := $(DEV),search,pretrained,milvus,track

# Threads that spin on busy cores cost far more than they give.
export OMP_WAIT_POLICY ?= passive

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow coverage mutants attack servers check format docs notebooks screenshots bench built dist release clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("adsh needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": set PYTHON=") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # which knows --group
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) -e '.[$(DEV)]' --group dev
	@touch $@

$(VENV)/.everything: $(VENV)/.dev
	$(PIP) -e '.[$(EXTRAS)]' --group dev --group docs
	@touch $@

install: $(VENV)/.everything  ## make .venv with every extra

demo: $(VENV)/.dev  ## train on handwritten digits and write demo-report/report.html (seconds, on the CPU)
	$(BIN)/adsh demo --out demo-report

PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: $(VENV)/.dev  ## run the tests, file by file on all cores (minutes)
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev  ## run those that only repeat what `make test` checks: more kills, more examples, every network
	$(PYTEST) -m slow $(ARGS)

coverage: $(VENV)/.dev  ## run all tests and say which lines and branches of src/ they leave out; less than 95 % fails
	ADSH_TEST_FORK=0 $(PYTEST) --cov --cov-report=term --cov-report=html $(ARGS)

$(VENV)/.mutants: $(VENV)/.dev
	$(PIP) --group mutants
	@touch $@

mutants: $(VENV)/.mutants  ## change learn, hamming and the metrics a little, and see that a test fails (an hour); ONLY="adsh.learn.sweep*"
	OMP_NUM_THREADS=1 $(BIN)/python tools/mutants.py run --max-children 2 $(if $(ONLY),"$(ONLY)")
	$(BIN)/python tools/mutants.py table

$(VENV)/.attack: $(VENV)/.dev
	$(PIP) --group attack
	@touch $@

attack: $(VENV)/.attack  ## attack real processes on this machine, each attack for MINUTES (5) at most; ONLY="bodies images"
	$(BIN)/python -m tools.attack $(ONLY) --minutes $(or $(MINUTES),5) --out attack.json

$(VENV)/.servers: $(VENV)/.dev
	$(PIP) -e '.[milvus]' --group milvus-test
	@touch $@

servers: $(VENV)/.servers  ## add Milvus for its tests (300 MB), which are skipped without it

check: $(VENV)/.dev  ## lint, format check, words that should not return, and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_words.py src tests tools benchmarks runs examples docs
	$(BIN)/mypy

format: $(VENV)/.dev  ## format and sort imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) --group docs
	@touch $@

docs: $(VENV)/.docs  ## build the docs into site/; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

notebooks: $(VENV)/.dev  ## remake examples/notebooks from the examples
	$(BIN)/python examples/to_notebooks.py

screenshots: $(VENV)/.dev  ## remake all images in docs/images (needs chromium)
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/screenshots.py

bench: $(VENV)/.dev  ## measure what n costs, the metrics, sources, feeding, exported models and the indexes (about 45 minutes, 4 GiB)
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/label_sets.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/sources.py
	$(BIN)/python benchmarks/feed.py
	$(BIN)/python benchmarks/distributed.py
	$(PIP) -e '.[search,pretrained]'
	$(BIN)/python benchmarks/export.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/kill.py 200 10
	$(BIN)/python benchmarks/rare_filter.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/mutated_images.py
	$(BIN)/python benchmarks/postgres.py

built: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation .
	$(BIN)/python .ci/check_dist.py

dist: built  ## build the wheel and the source archive into dist/, look into both, and try both in an empty environment
	$(BIN)/python .ci/try_dist.py

release: built  ## the same, tried on the oldest and on the newest supported Python at hand
	$(BIN)/python .ci/try_dist.py --both

clean:  ## remove what the other targets made
	rm -rf $(VENV) dist build site htmlcov mutants .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
