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
	$(call run_tests,-q -m 'not thorough' $$chosen)

.PHONY: test
test: ## Run the tests, linters among them (PYTEST_ARGS='-k wire' for some, '-n 0' one by one).
	@$(call run_tests,-m 'not thorough')

.PHONY: test-all
test-all: ## Run all tests: further cases of them, the image and kernel 6.1 as well.
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
	@$(DEVELOP) --notebooks python -m jupyterlab $(NOTEBOOK_ARGS) analysis/notebooks

.PHONY: labs
labs: ## Open the teaching labs in JupyterLab, as students get them (docs/teaching.md).
	@$(DEVELOP) --labs python -P -m analysis.teaching.hand_out my-labs
	@$(DEVELOP) --labs python -m jupyterlab $(NOTEBOOK_ARGS) my-labs

# Of each sweep as much as the notebooks need: docs/notebooks.md.
TABLE1 := --client graph -n 1
HANDSHAKES := --only page=amazon,page=wikipedia,rtt_ms=20,rtt_ms=100
REUSE := --only page=amazon,page=wikipedia,rtt_ms=20,rtt_ms=200 -n 1
W := initcwnd_segments
WINDOWS := --only $(W)=1,$(W)=2,$(W)=4,$(W)=7,$(W)=10,$(W)=15,$(W)=20
WEBSITE := --only rtt_ms=20,rtt_ms=50,rtt_ms=100,rtt_ms=150,rtt_ms=200

# measure CONFIG,OPTIONS,KIND and keep CONFIG,KIND, where KIND is baselines or samples.
measure = ./run.sh run configs/$(1).toml $(2) -o "$$made/$(3)/$(1)"
keep = ./run.sh baseline update "$$made/$(2)/$(1)" --to analysis/$(2)/$(1) --drop-cells \
	  --reason "$(REASON)"

measure_table1 = $(call measure,paper-table1,,baselines)
keep_table1 = $(call keep,paper-table1,baselines)
measure_nightly = $(call measure,nightly,,baselines)
keep_nightly = $(call keep,nightly,baselines)
measure_samples = $(call measure,paper-table1,$(TABLE1),samples) && \
	$(call measure,paper-handshake-share,$(HANDSHAKES),samples) && \
	$(call measure,cs244-reuse,$(REUSE),samples) && \
	$(call measure,tum-initcwnd,$(WINDOWS),samples) && \
	$(call measure,tum-website,$(WEBSITE),samples) && \
	$(call measure,overload-establishment,-n 1,samples) && \
	$(call measure,overload-windows-clients,-n 1,samples) && \
	$(call measure,overload-termination,-n 1,samples) && \
	$(call measure,overload-segments,-n 1,samples) && \
	$(call measure,scenarios,-n 1,samples)
keep_samples = $(call keep,paper-table1,samples) && $(call keep,paper-handshake-share,samples) && \
	$(call keep,cs244-reuse,samples) && $(call keep,tum-initcwnd,samples) && \
	$(call keep,tum-website,samples) && $(call keep,overload-establishment,samples) && \
	$(call keep,overload-windows-clients,samples) && $(call keep,overload-termination,samples) && \
	$(call keep,overload-segments,samples) && $(call keep,scenarios,samples)

write_readme = $(DEVELOP) --without-kernel python -P -m analysis.readme
# All is measured before any of it is kept: what is kept changes the work tree, which results name.
renew = @$(if $(REASON),,$(error say why, which is kept with them: make $@ REASON='what changed')) \
	made=$$(mktemp -d) && trap 'rm -rf -- "$$made"' EXIT && $(1) && $(2) && $(write_readme)

.PHONY: samples
samples: ## Measure the notebooks' sample results anew (REASON='what changed').
	$(call renew,$(measure_samples),$(keep_samples))

.PHONY: table1
table1: ## Measure the committed Table 1 anew (REASON='what changed').
	$(call renew,$(measure_table1),$(keep_table1))

.PHONY: results
results: ## Measure all committed results anew: Table 1, nightly, samples (REASON='what changed').
	$(call renew,$(measure_table1) && $(measure_nightly) && $(measure_samples),\
	$(keep_table1) && $(keep_nightly) && $(keep_samples))

.PHONY: readme
readme: ## Write the README's tables and STATUS.md anew, from the committed results.
	@$(write_readme)

.PHONY: bench
bench: ## Measure speed, exactness and determinism; prints a table (BENCH_ARGS=--quick).
	@$(DEVELOP) python -P -m bench $(BENCH_ARGS)

.PHONY: regression
regression: ## Run the nightly sweep, remember it, and compare it with its baseline.
	@results=results/regression-$$(date -u +%Y%m%dT%H%M%SZ); \
	./run.sh run configs/nightly.toml -o "$$results" || { code=$$?; [[ $$code == [14] ]] || exit $$code; }; \
	./run.sh history add "$$results" && ./run.sh history page && \
	./run.sh compare analysis/baselines/nightly "$$results" --across all

.PHONY: reference
reference: ## Write docs/command-line.md, knobs.md and results.md anew, from the code.
	@$(DEVELOP) --without-kernel python -P -m firstflight.reference

.PHONY: lock
lock: ## Rewrite the lock files (LOCK_ARGS=--upgrade takes newer versions).
	@$(DEVELOP) --without-kernel bootstrap/lock.sh $(LOCK_ARGS)

.PHONY: clean
clean: ## Remove all that was built: the cache folder and tools' caches here. Results stay.
	rm -rf -- "$(CACHE)" .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf -- {} +
