# Begin with `make demo` or `make test`; each builds the environment that it needs.
# PYTHON chooses the interpreter (3.10 to 3.14); run `make clean` before you change it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Small models run fastest with one thread in each process.
export OMP_NUM_THREADS ?= 1
# If this variable were set, each process of the tests would compile the tests and the package again.
unexport PYTHONDONTWRITEBYTECODE

NATIVE := $(wildcard onmt_entmax/sparse/backends/csrc/* onmt_entmax/recurrence/backends/csrc/*)

# All tests of a file run in one process, which keeps the file's fixtures. Files run in the order of tests/conftest.py.
WORKERS ?= 2
DISTRIBUTE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python -m pytest $(DISTRIBUTE)

.PHONY: demo test coverage test-slow attack bench lint check-wheel docs clean

demo: $(VENV)/.installed
	$(BIN)/python tools/demo.py

# `make test TESTS=tests/search` runs only these.
test: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow" $(TESTS)

# Measure which lines and branches the quick tests run; build/coverage/index.html shows them.
coverage: $(VENV)/.installed-dev
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(DISTRIBUTE) -m "not slow" $(TESTS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage html -q -d build/coverage
	$(BIN)/coverage report --skip-covered --sort=cover

# The long end-to-end checks, and the property tests once more with many more examples.
test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow
	$(PYTEST) -m "hypothesis and not slow" --hypothesis-profile=thorough

# Try new cases of the attacks in tests/faults; `python -m tools.attack -h` describes them.
MINUTES ?= 10
attack: $(VENV)/.installed-dev
	$(BIN)/python -m tools.attack --minutes $(MINUTES) --seed $$(date +%s)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	for name in mapping attention loss output_layer recurrence; do \
	    $(BIN)/python -m tools.bench.$$name || exit 1; \
	done

check-wheel:
	PYTHON=$(PYTHON) tools/check_wheel.sh

# The site is built in build/site. Pages are laid out as in the repository, so that their links work.
PAGES = $(wildcard *.md CITATION.* LICENSE docs/*.md docs/*.ipynb docs/pictures/*.png data/README.md \
	data/models/*/README.md tools/site/*.md) $(LINKED_CODE)
# Files of code to which documents link.
LINKED_CODE = onmt_entmax/search/certificate.py tests/oracles.py tests/search/tables.py
docs: $(VENV)-docs/.installed
	rm -rf build/pages build/site
	mkdir -p build/pages
	tar cf - $(PAGES) | tar xf - -C build/pages
	$(VENV)-docs/bin/mkdocs build --strict

BUILT_FROM := pyproject.toml constraints.txt $(NATIVE)
# An environment whose installation failed, for example with a wrong PYTHON, is made anew: it cannot import torch.
CLEAR = $(shell $(BIN)/python -c 'import torch' 2>/dev/null || echo --clear)
# With "compat", `import onmt_entmax` also works in the folder above the checkout, which has the package's name.
INSTALL = $(PYTHON) -m venv $(CLEAR) $(VENV) && \
	$(BIN)/pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat -c constraints.txt -e
# Without its dependencies: pyonmttok has no wheel for Python 3.13, and pyproject.toml lists the others.
INSTALL_OPENNMT = $(BIN)/pip install --quiet --disable-pip-version-check --no-deps OpenNMT-py==2.3.0
# Without this check, pip says only ResolutionImpossible, or nothing.
SUPPORTED = import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))
CHECK_PYTHON = @$(PYTHON) -c '$(SUPPORTED)' || \
	{ echo "$(PYTHON) is not Python 3.10 to 3.14: name another, as in make demo PYTHON=python3.12" >&2; exit 1; }
CHECK_COMPILED = @find onmt_entmax -name '*.so' | grep -q . || \
	echo "warning: the C++ code was not compiled, so PyTorch is used, which is slower: install g++, then make clean" >&2

$(VENV)/.installed: $(BUILT_FROM)
	$(CHECK_PYTHON)
	$(INSTALL) .
	$(INSTALL_OPENNMT)
	$(CHECK_COMPILED)
	touch $@

# This environment has the tools of development, too. It counts as .installed, so the C++ code is compiled once.
$(VENV)/.installed-dev: $(BUILT_FROM)
	$(CHECK_PYTHON)
	$(INSTALL) .[dev]
	$(INSTALL_OPENNMT)
	$(CHECK_COMPILED)
	touch $(VENV)/.installed $@

$(VENV)-docs/.installed: tools/site/requirements.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-docs run/demo build onmt_entmax/sparse/backends/_*.so onmt_entmax/recurrence/backends/_*.so
