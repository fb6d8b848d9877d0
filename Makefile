# Two commands set everything up by themselves: `make demo` and `make test`. `make help` lists the rest.
PY := .venv/bin/python
.DEFAULT_GOAL := help
.PHONY: help install dev demo test check lint types imports soak bench format clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install:  ## set up .venv: locked packages, native engine, embedded model
	@scripts/install
	@echo 'ready: .venv/bin/kith'

dev:
	@scripts/install --dev

demo:  ## set up, then run the main job on two real nodes of this machine
	@scripts/install
	@.venv/bin/kith demo

test: dev  ## set up, then run the tests
	$(PY) -m pytest -q

check: lint types imports test  ## lint, types, import rules and tests: what a change must pass

lint: dev  ## ruff
	.venv/bin/ruff check .

types: dev  ## mypy --strict
	.venv/bin/mypy
	.venv/bin/mypy scripts

imports: dev  ## who may import whom
	.venv/bin/lint-imports --no-logo

soak: dev  ## the long fault and soak runs, in full
	KITH_SOAK=full $(PY) -m pytest -q -m soak

bench: dev  ## the benchmarks, printed as ratios
	$(PY) -m benchmarks

format: dev  ## let ruff rewrite the code
	.venv/bin/ruff format .

clean:  ## remove .venv and build folders; the caches in your home stay
	rm -rf .venv build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
