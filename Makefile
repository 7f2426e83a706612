# Every target sets up what it needs; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/firstflight
DEVELOP := bootstrap/develop.sh
PYTEST_ARGS ?=
BENCH_ARGS ?=
NOTEBOOK_ARGS ?=
KERNELS ?= 7.3 6.1

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.PHONY: setup
setup: ## Install packages, tools and the default kernel, as far as they are missing.
	@$(DEVELOP) true

# Bytecode of tests is kept, whatever a user prefers elsewhere: else each worker compiles all of it.
run_tests = PYTHONDONTWRITEBYTECODE= $(DEVELOP) python -m pytest -ra -n auto --dist loadfile $(1) \
	$(PYTEST_ARGS)

.PHONY: check
check: ## Lint, check types and run the nearest tests of what changed since main, in a minute.
	@chosen=$$($(DEVELOP) --without-kernel python -P -m tests.changed) && \
	$(call run_tests,-q -m 'not thorough and not nightly' $$chosen)

.PHONY: test
test: ## Run the tests, linters among them (PYTEST_ARGS='-k wire' for some, '-n 0' one by one).
	@left_out=$$($(DEVELOP) --without-kernel python -P -m tests.changed --wings) && \
	$(call run_tests,-m 'not thorough and not nightly' $$left_out)

.PHONY: test-all
test-all: ## Run what continuous integration does: further tests, and those of all wings.
	@$(call run_tests,-m 'not nightly')

.PHONY: test-nightly
test-nightly: ## Run all tests: other kernels, the image and all cases of real loads as well.
	@$(call run_tests,)

.PHONY: durations
durations: ## Run all tests and note how long each took, by which the longest begin.
	@$(call run_tests,--note-durations)

.PHONY: lint
lint: ## Run every linter and type checker.
	@$(DEVELOP) --without-kernel python -m pytest -ra -q tests/test_lint.py

.PHONY: kernel
kernel: ## Build the virtual kernels (KERNELS=6.12 for one that only patches need).
	@$(DEVELOP) --without-kernel python -P -m testbed.kernel.build.cache $(KERNELS)

.PHONY: notebooks
notebooks: ## Open the notebooks in JupyterLab (NOTEBOOK_ARGS='--no-browser --port 8890').
	@$(DEVELOP) --notebooks python -m jupyterlab $(NOTEBOOK_ARGS) wings/papers/notebooks

.PHONY: labs
labs: ## Open the teaching labs in JupyterLab, as students get them (wings/papers/docs/teaching.md).
	@$(DEVELOP) --labs python -P -m wings.papers.teaching.hand_out my-labs
	@$(DEVELOP) --labs python -m jupyterlab $(NOTEBOOK_ARGS) my-labs

write_readme = $(DEVELOP) --without-kernel python -P -m analysis.readme
# Measure the committed results whose lines match $(1), and keep them. All is measured before any of it is kept:
# what is kept changes the work tree, which results name.
renew = @$(if $(REASON),,$(error say why, which is kept with them: make $@ REASON='what changed')) \
	made=$$(mktemp -d) && trap 'rm -rf -- "$$made"' EXIT && \
	mapfile -t lines < <(grep -E '$(1)' analysis/committed-results.txt) && \
	for line in "$${lines[@]}"; do read -r kept name options <<< "$$line"; \
	./run.sh run "configs/$$name.toml" --no-store $$options -o "$$made/$$kept/$$name" || exit; done && \
	for line in "$${lines[@]}"; do read -r kept name options <<< "$$line"; \
	./run.sh baseline update "$$made/$$kept/$$name" --to "analysis/$$kept/$$name" --drop-cells \
	  --reason "$(REASON)" || exit; done && $(write_readme)

.PHONY: many-machines
many-machines: ## Install what stores of results elsewhere take (docs/many-machines.md).
	@$(DEVELOP) --many-machines true

.PHONY: samples
samples: ## Measure the results that notebooks and pages show anew (REASON='what changed').
	$(call renew,^samples )

.PHONY: table1
table1: ## Measure the committed Table 1 anew (REASON='what changed').
	$(call renew,^baselines paper-table1)

.PHONY: results
results: ## Measure all committed results anew: Table 1, nightly, samples (REASON='what changed').
	$(call renew,^(baselines|samples) )

.PHONY: readme
readme: ## Write the tables of all pages and STATUS.md anew, from the committed results.
	@$(write_readme)

.PHONY: bench
bench: ## Measure speed, exactness and determinism; prints a table (BENCH_ARGS=--quick).
	@$(DEVELOP) python -P -m bench $(BENCH_ARGS)

.PHONY: regression
regression: ## Run the nightly sweep, remember it, and compare it with its baseline.
	@results=results/regression-$$(date -u +%Y%m%dT%H%M%SZ); \
	./run.sh run configs/nightly.toml --no-store -o "$$results" || { code=$$?; [[ $$code == [14] ]] || exit $$code; }; \
	./run.sh history add "$$results" && ./run.sh history page && \
	./run.sh compare analysis/baselines/nightly "$$results" --across all

.PHONY: reference
reference: ## Write verbs.json, docs/command-line.md, knobs.md and results.md anew, from the code.
	@$(DEVELOP) --without-kernel python -P -m firstflight.reference

.PHONY: lock
lock: ## Rewrite the lock files (LOCK_ARGS=--upgrade takes newer versions).
	@$(DEVELOP) --without-kernel bootstrap/lock.sh $(LOCK_ARGS)

.PHONY: clean
clean: ## Remove all that was built: the cache folder and tools' caches here. Results stay.
	rm -rf -- "$(CACHE)" .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf -- {} +
