# make run:  set up, embed the bundled sentences with the embedded biLM, print and draw what its layers tell
# make test: set up, then lint, types and all tests
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test docs bench clean

run: $(VENV)/installed
	$(BIN)/python -m spacy elmo demo out

test: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q

docs: $(VENV)/installed-dev
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build/html

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/speed.py --json runs/speed/speed.json --plot runs/speed/speed.png
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/memory.py --stream 10000000 --plot runs/memory/stream.png
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/neighbour.py
	$(BIN)/python benchmarks/savings.py

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt torch
	$(PIP) install -q -c constraints.txt -e .[plot]
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) install -q -c constraints.txt -e .[dev]
	touch $@

clean:
	rm -rf $(VENV) out build docs/_build *.egg-info
