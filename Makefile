# `make` tells what there is. Every target sets up what it needs in its own virtual environment.

PYTHON ?= python3
VENV   := .venv
BIN    := $(CURDIR)/$(VENV)/bin
READY  := $(VENV)/.ready
AUDIT  := $(BIN)/inductor-audit
DEMO   := build/demo
SCRIPT := fixtures/programs/sin_cos.py

# An audit says by exit code 1 that an ablation did not act. Here that is an answer, not a failure.
ANSWER := || test $$? -eq 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint check bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install the tool, its test tools and the pinned torch into .venv

$(READY): pyproject.toml .ci/constraints.txt
	@echo "Setting up $(VENV), once; this takes some minutes"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --editable '.[capture,lab,slurm,dask,dev]'
	@touch $@

# $(call captured,FOLDER,OPTIONS): one run of the example; its log is shown only when it fails.
define captured
	@echo "capturing $(1): $(if $(2),$(2),no ablation)"
	@$(AUDIT) capture --out $(DEMO)/$(1) $(2) $(SCRIPT) 2> $(DEMO)/$(1).log || { cat $(DEMO)/$(1).log; exit 1; }
endef

demo: $(READY) ## Do two thresholds switch inlining off? Captures four runs and answers
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(call captured,baseline,)
	$(call captured,thresholds,--ablation realize-thresholds)
	$(call captured,no-inlining,--ablation inlining)
	$(call captured,no-inlining-no-fusion,--ablation inlining+fusion)
	@for view in "report baseline" "audit baseline thresholds" "audit baseline no-inlining" \
	    "audit baseline no-inlining-no-fusion"; do \
	    echo; echo "\$$ inductor-audit $$view"; (cd $(DEMO) && $(AUDIT) $$view) $(ANSWER) || exit; done

test: $(READY) ## Run all tests, those that capture live runs too
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(READY) ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cd analyzer/capture/inside && $(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p inductor_audit_inside

check: lint test ## Everything that must hold before a commit

bench: $(READY) ## Measure CPU time and memory of reports; compiles transformers of 6 to 96 layers once
	$(BIN)/python -m tests.benchmarks

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
