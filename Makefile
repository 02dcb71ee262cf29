# README's two commands are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
# How many tests run at once. Each takes about a core and a gigabyte.
WORKERS ?= 2

.PHONY: demo check test nightly lint types docs reference shots bench dist clean

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(RUN)/shoal demo

# Tests start shoal many times: what it imports is compiled once and kept.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.dev
	$(RUN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

# For quick edits, in less than a minute: style, structure, contracts of plug-ins and the core.
QUICK := tests/plugins/contracts tests/test_architecture.py tests/test_public_api.py tests/plugins/test_search.py \
	tests/plugins/test_metrics.py tests/core/test_hierarchy.py tests/core/test_wording.py tests/workflow/test_anonymize.py
check: export SHOAL_CHECK := 1
check: $(VENV)/.dev
	$(RUN)/ruff check .
	$(RUN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(QUICK)

# The same tests with many more random examples, and those that need an idle machine.
nightly: export PYTHONDONTWRITEBYTECODE :=
nightly: export SHOAL_NIGHTLY := 1
nightly: $(VENV)/.dev
	$(RUN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

lint: $(VENV)/.dev
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(VENV)/.dev
	$(RUN)/mypy

reference: $(VENV)/.dev
	$(RUN)/python tools/reference.py
	$(RUN)/python tools/python_reference.py

docs: $(VENV)/.dev
	$(RUN)/mkdocs build --strict

shots: $(VENV)/.dev
	$(RUN)/python tests/support/screenshots.py

bench: $(VENV)/.dev
	$(RUN)/python benchmarks/search.py
	$(RUN)/python benchmarks/walk.py
	$(RUN)/python benchmarks/scale.py
	$(RUN)/python benchmarks/family.py
	$(RUN)/python benchmarks/negotiation.py
	$(RUN)/python benchmarks/diagnosis.py
	$(RUN)/python benchmarks/models.py
	$(RUN)/python benchmarks/regions.py
	$(RUN)/python benchmarks/cuts.py
	$(RUN)/python benchmarks/accuracy.py
	$(RUN)/python benchmarks/defaults.py $(TABLES) # the folder of the tables; none: says which
	$(RUN)/python benchmarks/uniqueness.py
	$(RUN)/python benchmarks/studio.py
	$(RUN)/python benchmarks/peers.py --peers '$(PEERS)' # an interpreter that has them; none: left out

dist: $(VENV)/.dev
	rm -rf dist
	$(RUN)/python -m build --outdir dist .
	$(PYTHON) -m venv dist/try
	dist/try/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist && try/bin/shoal --version && try/bin/shoal demo --json > demo.json && try/bin/shoal list > /dev/null
	# The two lines of pip that the docs tell people to run: the wheel as it is, above, and with the studio.
	dist/try/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[web]"
	cd dist && try/bin/python -c "import shoal.web.app"
	rm -rf dist/try dist/demo.json

clean:
	rm -rf $(VENV) site dist
