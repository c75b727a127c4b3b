# Everything runs in a virtual environment that these targets make and keep up to date: nothing but
# Python (3.11 or later, with the venv module) and make is needed to start.

PYTHON ?= python3
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := .venv-peers
MODELS := .venv-models

# Settings of the surroundings that libraries and tools read: no outcome of a check depends on them.
# tests/surroundings.py drops the same ones where pytest is run by hand.
SETTINGS := OPENBLAS_% GOTO_% OMP_% MKL_% KMP_% BLIS_% NPY_% LC_% LANG LANGUAGE COLUMNS LINES TERM \
    NO_COLOR FORCE_COLOR CLICOLOR% PYTEST_% PYTHONWARNINGS PYTHONOPTIMIZE PYTHONIOENCODING PYTHONUTF8 \
    PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED
CLEAN := env $(foreach setting,$(filter $(SETTINGS),$(.VARIABLES)),-u $(setting))

.DEFAULT_GOAL := help
.PHONY: help demo test check unit lit mutants fuzz bench bench-peers models unseen test-browser test-notebooks test-torch test-workers pyright onnx stablehlo docs fmt clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	    printf '  make %-12s %s\n' "$$name" "$$text"; done

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or later is needed: say make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[asm,cross,demo,test]'
	@touch $@

demo: $(READY) ## train a digit classifier: compiled step, differentiated loss, every stage's dump
	$(BIN)/python -m examples.digits

# The static checks use one core: they share the machine with the lit tests.
test: $(READY) ## run every check: static checks, lit tests, unit tests
	@failed=0; \
	$(MAKE) --no-print-directory --keep-going -j2 check lit || failed=1; \
	$(MAKE) --no-print-directory unit || failed=1; \
	exit $$failed

check: $(READY) ## check style, formatting and types
	$(CLEAN) $(BIN)/ruff check .
	$(CLEAN) $(BIN)/ruff format --check .
	$(CLEAN) $(BIN)/mypy --strict

lit: $(READY) ## run the FileCheck tests of every stage
	$(CLEAN) $(BIN)/lit -j $(JOBS) -sv lit_tests

unit: $(READY) ## run the unit tests
	$(CLEAN) $(BIN)/pytest -n $(JOBS) --dist worksteal

mutants: $(VENV)/.mutants ## report small changes of the compiler that no test notices: PLACE=passes/verify.py
	$(BIN)/python tests/mutants $(PLACE) --jobs $(JOBS) $(if $(MUTANTS),--mutants $(MUTANTS)) \
	    $(if $(SEED),--seed $(SEED)) $(if $(TESTS),--tests $(TESTS))

fuzz: $(READY) ## try the compiler on random programs, for hours: PROGRAMS=20000 ONLY="networks pairs"
	$(CLEAN) $(BIN)/python tests/fuzz.py $(ONLY) --jobs $(JOBS) $(if $(PROGRAMS),--programs $(PROGRAMS)) \
	    $(if $(LOGS),--logs $(LOGS))

$(VENV)/.mutants: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	@touch $@

bench: $(READY) ## measure against numpy on this machine
	$(BIN)/python -m benchmarks

bench-peers: $(PEERS)/.ready ## measure beside torch, jax, IREE, ONNX Runtime, numba: writes docs/peers.md; ONLY=mm512,conv3x3
	$(CLEAN) $(PEERS)/bin/python -m benchmarks.peers --output docs $(if $(ONLY),--only $(ONLY)) $(ARGS)

models: $(MODELS)/.ready ## run models of torch and flax, beside them: writes docs/models.md; ONLY="bert resnet18", ARGS=--no-time
	$(CLEAN) $(MODELS)/bin/python -m benchmarks.models --output docs $(if $(ONLY),--update --only $(ONLY)) $(ARGS)

unseen: $(PEERS)/.ready ## run programs that nobody tuned for, beside numpy, jax and numba: writes docs/unseen.md; ONLY="nbody resize"
	$(CLEAN) $(PEERS)/bin/python -m benchmarks.unseen --output docs $(if $(ONLY),--only $(ONLY)) $(ARGS)

test-torch: $(PEERS)/.torch ## compare PTIR operations and their gradients with torch's, and run modules of torch
	$(CLEAN) $(PEERS)/bin/python -m pytest -n $(JOBS) tests/parity tests/models/torch \
	    tests/test_website.py::test_names_that_tables_compare_exist

test-browser: $(VENV)/.browser ## use the page of mind-mlir explore in Chromium, and measure it: needs Debian's package chromium
	$(CLEAN) $(BIN)/pytest -s tests/tools/explorer/browser.py

$(VENV)/.browser: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	@touch $@

test-notebooks: $(VENV)/.notebooks ## run the notebook of the examples, and interrupt a kernel
	$(CLEAN) $(BIN)/python -m pytest tests/tools/notebooks

$(VENV)/.notebooks: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[notebook]'
	@touch $@

test-workers: $(VENV)/.workers ## run compiled functions on workers of joblib, Dask and Ray
	$(CLEAN) $(BIN)/python -m pytest tests/workers

$(VENV)/.workers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[distributed,ray]'
	@touch $@

pyright: $(READY) ## check with pyright what type checkers see of compiled functions; it needs npx
	npx --yes pyright@1.1.414 --project tests/pyrightconfig.json --pythonpath $(BIN)/python

# The other frameworks have an environment of their own: what they need is not to change what the tests run with.
$(PEERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --editable .
	$(PEERS)/bin/python -m benchmarks.peers.install
	@touch $@

$(PEERS)/.torch: $(PEERS)/.ready
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

# Models are built by newer libraries than the other frameworks are measured with.
$(MODELS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(MODELS)
	$(MODELS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[models]'
	@touch $@

onnx: $(READY) ## run ONNX's own tests of operators: make onnx ONLY=resize
	$(CLEAN) $(BIN)/python tests/models/onnx/backend.py --jobs $(JOBS) $(if $(ONLY),--only $(ONLY))

stablehlo: $(READY) ## run StableHLO's interpreter tests: make stablehlo DIR=stablehlo/stablehlo/tests/interpret
	$(CLEAN) $(BIN)/python tests/languages/stablehlo/suite.py $(DIR)

docs: $(VENV)/.docs ## write the generated files anew, build the site, check that all pages are true
	$(BIN)/mind-mlir ops --markdown --output dialect/ops.md
	$(BIN)/mind-mlir ops --irdl --output dialect/mind.irdl.mlir
	$(BIN)/mind-mlir ops --dtypes --output docs/ptir-operations.md
	$(BIN)/python -m mind_mlir.numpy.stub > mind_mlir/numpy/__init__.pyi
	$(BIN)/python -m mind_mlir.numpy.page > docs/numpy.md
	$(BIN)/python tests/api_reference.py > docs/api.md
	$(BIN)/python -m mind_mlir.passes.simplify.reference > docs/identities.md
	$(BIN)/python -m mind_mlir.languages.mind.elaboration.reference > docs/language-reference.md
	$(BIN)/python editors/grammars.py
	$(BIN)/mind-mlir buffers examples/conv.ir --target=avx2 --output docs/buffers.svg
	$(BIN)/python -m website.error_index > docs/errors.md
	$(BIN)/python -m website.pictures
	$(BIN)/python -m website
	$(BIN)/properdocs build --quiet --strict --config-file build/properdocs.yml
	$(CLEAN) $(BIN)/pytest tests/test_docs.py tests/test_website.py
	@echo "The site is in build/site/index.html"

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

fmt: $(READY) ## format the sources and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove caches, build outputs and the demo's dumps
	rm -rf build dist demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find lit_tests -name Output -type d -prune -exec rm -rf {} +
	find . -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## also remove the virtual environment
	rm -rf $(VENV) $(PEERS) $(MODELS) *.egg-info
