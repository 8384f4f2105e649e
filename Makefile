# Few targets, each doing its own set-up. `make` prints this help.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check bench docs lock clean

help:  ## print this help
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/ready: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(VENV)/ready  ## run the main job, start to finish, and verify every step
	$(BIN)/muster demo forecast

test: $(VENV)/ready  ## run all tests
	$(BIN)/python -m pytest

check: $(VENV)/ready  ## types, lint and format of sources and tests
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

bench: $(VENV)/ready  ## measure, from outside and inside
	$(BIN)/python -m benchmarks

docs: $(VENV)/ready  ## write the generated reference pages
	$(BIN)/python -m muster.cli.reference docs/reference

lock: $(VENV)/ready  ## refresh requirements.lock from pyproject.toml
	$(BIN)/pip-compile --quiet --no-header --extra dev --extra demo --strip-extras --no-emit-index-url --no-emit-find-links --output-file requirements.lock pyproject.toml

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
