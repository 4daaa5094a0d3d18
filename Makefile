# make run:  set up, embed the bundled sentences with the embedded biLM, print and draw what its layers tell, and write a page
#            to explore them
# make quick: set up, then lint, types and the tests worth running after each change
# make test: set up, then lint, types and all tests
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run quick test docs bench sanitize fuzz soak dist clean

run: $(VENV)/installed
	$(BIN)/python -m spacy elmo demo out
	$(BIN)/python -m spacy elmo explore out/explore.html --force

# two workers, for two cores; one thread in each. Tests that set two threads wait passively, or those of one worker would
# spin while the other's work. A file's tests stay together, since they share what is slow to make
WORKERS ?= 2
PYTEST = OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

quick: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow"

test: $(VENV)/installed-ray
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST)

docs: $(VENV)/installed-dev
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build/html

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.tokens_per_second
	$(BIN)/python -m benchmarks.memory peaks
	$(BIN)/python -m benchmarks.memory stream --plot runs/memory/stream.png
	$(BIN)/python -m benchmarks.first_vector
	$(BIN)/python -m benchmarks.without_parts
	$(BIN)/python -m benchmarks.without_parts --neighbour

# the compiled loops with gcc's sanitizers, with each instruction set of this machine
CALLS ?= 10000
sanitize: $(VENV)/installed-dev
	$(BIN)/python -m scripts.harness.sanitize --calls $(CALLS)

# damaged files: make fuzz MINUTES=60 TARGET=weights
MINUTES ?= 3
fuzz: $(VENV)/installed-dev
	$(BIN)/python -m scripts.harness.fuzz --minutes $(MINUTES) $(if $(TARGET),--target $(TARGET))

# endurance and kills: hours at SIZE=1
SIZE ?= 1
soak: $(VENV)/installed-dev
	$(BIN)/python -m scripts.harness.soak --size $(SIZE)

# the wheel is built from the sdist. auditwheel refuses one without compiled loops
# the time of the commit in place of the clock's: the same commit gives the same bytes
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
dist: $(VENV)/installed-release
	rm -rf dist
	$(BIN)/python -m build --outdir dist/plain .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m auditwheel repair --strip --wheel-dir dist dist/plain/*.whl
	mv dist/plain/*.tar.gz dist
	rm -r dist/plain
	$(BIN)/python -m build --wheel --outdir dist packages/en_core_softmax
	$(BIN)/python -m build --wheel --outdir dist packages/en_mini
	$(BIN)/python -m build --wheel --outdir dist packages/la_mini
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m scripts.check_dist dist

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -c constraints.txt -e .[plot] -e ./packages/en_core_softmax
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) install -q -c constraints.txt -e .[dev]
	touch $@

# 80 MB, and without a wheel for every Python: tests that need it are skipped then
$(VENV)/installed-ray: $(VENV)/installed-dev
	$(PIP) install -q -c constraints.txt --only-binary ray -e .[ray] || echo "Ray was not installed: its tests are skipped"
	touch $@

$(VENV)/installed-release: $(VENV)/installed
	$(PIP) install -q -c constraints.txt -e .[release]
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build *.egg-info
	rm -f out/vectors.hdf5 out/senses.png out/explore.html  # of make run; out may also have a pipeline that was trained
