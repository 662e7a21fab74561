# make run    set up everything and run the main job (writes dpcal-report/)
# make test   set up everything, then lint, types, doctests, tests, notebooks
# make test-torch  the tests of PyTorch and Opacus, which it installs; make test runs them where they are
# make quick  the tests that are not marked as slow, for daily work
# make marks  the tests, and which of them lack or need not the mark `slow`
# make bench  slower tests, studies, and timings against other packages
# make docs   the site, into build/site, and all notebooks; make docs-test opens it in Chromium
# make coverage  the lines that the tests reach, into build/coverage
# make wheel  build the wheel and the source distribution into dist/
# make install CONSTRAINTS=.github/constraints.txt  the same versions of everything as last time; make lock renews them
# make oldest, make newest  the dependencies at their oldest, or nightly, versions; tests then run with these

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
TESTS := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

KERNELS := $(wildcard _ext/*.pyx _ext/*.pxd _ext/*.h)
SOURCES := $(filter-out build/%,$(sort $(wildcard *.py* */*.py* */*/*.py* */*/*/*.py* calibrate/papers/*/*.txt report/templates/*)))
# The editable install links file by file, so a new file asks for a new install: the list is in the name.
INSTALLED := $(VENV)/installed-$(shell printf '%s' '$(SOURCES)' | cksum | cut -d' ' -f1)

.PHONY: run test test-torch quick marks lint types unit bench docs docs-test coverage lock wheel oldest newest install clean

run: install
	$(BIN)/python notebooks/demonstration.py

# One after the other: the checker of types would be a third process beside the two of the tests.
# With what it keeps in .mypy_cache it takes seconds.
test: install
	$(MAKE) --no-print-directory --jobs 1 lint types unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: install
	$(BIN)/mypy -p dpcal

# PyTorch's wheel for processors is not on PyPI, whose own brings 3 GB for devices.
test-torch: install
	$(BIN)/python -m pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu torch opacus
	$(TESTS) tests/adapters tests/optim/boundary

unit: install
	$(TESTS)

quick: install
	$(TESTS) -m "not slow"

marks: install
	$(TESTS) --marks

bench: install
	$(TESTS) -m study
	$(TESTS) -m "" benchmarks
	$(BIN)/python -m benchmarks

# Where a line that no test reaches fails: records and noise, what is written down, proofs, rounding.
WHOLE := optim/boundary/*,optim/account.py,optim/budget.py,calibrate/papers/kernel/*,accountants/rounding.py,_internal/precision.py

coverage: install
	$(TESTS) --cov --cov-report=term:skip-covered --cov-report=html:build/coverage
	$(BIN)/python -m coverage report --skip-covered --show-missing --fail-under=100 --include='$(WHOLE)'

# All pages are written: each has the contents of all, which a change of one page may change.
docs: $(VENV)/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --write-all --conf-dir docs \
		--doctree-dir build/doctrees . build/site

docs-test: docs
	$(BIN)/python -m pytest docs/site

$(VENV)/docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	touch $@

wheel: install
	$(BIN)/python -m build

oldest: install
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --python $(BIN)/python --upgrade --resolution lowest-direct -r pyproject.toml

newest: install
	$(BIN)/python -m pip install --quiet --upgrade --pre numpy scipy \
		--extra-index-url https://pypi.anaconda.org/scientific-python-nightly-wheels/simple
	$(BIN)/python -m pip install --quiet --upgrade --no-deps attrs  # newer than dp-accounting asks for

lock: install
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-annotate --no-header \
		--group dev --group docs $(addprefix --extra ,demo train dask) \
		pyproject.toml --output-file .github/constraints.txt

install: $(INSTALLED)

$(INSTALLED): setup.py pyproject.toml $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		$(addprefix --constraint ,$(CONSTRAINTS)) --config-settings editable_mode=strict --group dev \
		--editable ".[demo,train,certify,discrete,dask]"
	rm -f $(VENV)/installed-*
	touch $@

clean:
	rm -rf build dist $(VENV) dpcal-report *.egg-info
