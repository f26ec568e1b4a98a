# One command each: `make plan` sets up and plans the main example, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Of the tests, those of one small plan as a whole, of the program's blocks, of specs and installation, and the examples in docstrings;
# and the versions of Python on which they run beside that of `.venv`.
QUICK := tests/golden tests/solvers/model tests/planner/spec tests/house models catalog
VERSIONS ?= 3.11 3.13

.PHONY: pictures dashboard-pictures dashboard-plans gallery site plan test nightly quick versions newest constraints release audit fuzz coverage lint format docs clean

plan: $(VENV)/.installed
	$(BIN)/flopwatt plan examples/mixed_fleet.json

# docs/formulation.md from the docstrings of the program's blocks, docs/architectures.md and docs/audit.md from the catalog.
docs: $(VENV)/.installed
	$(PYTHON) docs/build_formulation.py
	$(BIN)/python docs/build_architectures.py
	$(BIN)/python docs/build_audit.py
	$(BIN)/python docs/build_questions.py

# What a terminal shows of the examples: docs/pictures, and the page of the stored plan in README.md and docs/command-line.md.
pictures: $(VENV)/.installed
	$(BIN)/python docs/build_pictures.py
	$(BIN)/python docs/build_page.py

# The pages of the dashboard in a browser: docs/pictures. Needs a Chromium on the path.
dashboard-pictures: $(VENV)/.installed-test
	$(BIN)/python docs/build_dashboard_pictures.py

# The plans that the dashboard shows of the examples: examples/plans, about 20 minutes on two cores.
dashboard-plans: $(VENV)/.installed
	$(BIN)/python docs/build_dashboard_plans.py

# The systems people announce as worked plans: docs/systems from the plans in examples/systems/plans; `make gallery PLANS=new` solves them again.
gallery: $(VENV)/.installed-test
	$(BIN)/python docs/build_gallery.py $(if $(filter new,$(PLANS)),--solve)

# The documentation as a site that opens without a network, in site/; a broken link ends it.
site: $(VENV)/.installed-site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

# All tests, and the examples in the docstrings of the four packages.
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile

# What `make test` leaves out: the long tests, those that draw more cases, the mutations that tests must notice, and an audit that looked something up.
# `make nightly NIGHTLY=tests/solvers` for one folder.
NIGHTLY ?= tests
nightly: $(VENV)/.installed-test
	FLOPWATT_ALL_CASES=1 $(BIN)/python -m pytest -n auto --dist loadfile -m "long or drawn" $(NIGHTLY)
	$(if $(filter tests,$(NIGHTLY)),$(BIN)/python -m tests.mutations)
	$(if $(filter tests,$(NIGHTLY)),$(MAKE) --no-print-directory audit)

# The quick part alone; on another Python: `make quick PYTHON=python3.13 VENV=.venv-3.13`.
quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile $(QUICK)

# The quick part on each of $(VERSIONS) that is installed, and a line on each that is not, or on which `make test` runs anyway.
versions: $(VENV)/.installed
	@for version in $(VERSIONS); do \
		if $(BIN)/python -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$$version')"; then \
			echo "Python $$version: that of $(VENV), on which \`make test\` runs"; \
		elif ! python$$version -c 'import venv, ensurepip' 2>/dev/null; then \
			echo "Python $$version: skipped, for it is not installed"; \
		else \
			echo "Python $$version: the quick part of the tests"; \
			$(MAKE) --no-print-directory quick PYTHON=python$$version VENV=.venv-$$version || exit 1; \
		fi; \
	done

# The newest versions of all packages, and the quick part on them: for once a week, before a user meets a release that breaks us.
NEWEST := .venv-newest
newest:
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
		--editable '.[audit,lint,release,site,test]'
	$(NEWEST)/bin/python -m pytest -n auto --dist loadfile $(QUICK)

# constraints.txt: the versions on which `make newest` has just passed.
constraints: newest
	$(NEWEST)/bin/python .ci/constraints.py $(NEWEST)/bin/python > $(NEWEST)/constraints.txt
	cp $(NEWEST)/constraints.txt constraints.txt

# sdist, wheel and notes for those who upgrade, in dist/; the wheel plans README's spec in an empty environment. `make release TAG=1` tags it.
release: $(VENV)/.installed-release
	$(BIN)/python .ci/release.py $(if $(filter 1,$(TAG)),--tag)

# Known vulnerabilities of the packages in $(VENV). Where pip-audit or its list is out of reach the audit is skipped, which ends the target
# with an error, unless `make audit SKIP=allowed` is asked for.
audit: $(VENV)/.installed
	@if $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[audit]'; then \
		$(BIN)/python .ci/audit.py $(if $(filter allowed,$(SKIP)),--skip-allowed); \
	else \
		echo "audit skipped: pip-audit cannot be installed"; \
		$(if $(filter allowed,$(SKIP)),true,exit 77); \
	fi

# The fuzzers for as long as they need for 100,000 specs, 15,000 other inputs, 2,000 solves, 5,000 tampered plans and 200 small questions, each
# solved in some twenty ways whose answers bound each other (`consistency`); a short run of each is part of `make test`.
# `make fuzz FUZZ="--count 500 --seed 7 links uploads"` for some, from another seed.
FUZZ ?=
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz.run $(FUZZ)

# The same with the lines that no test reaches; apart, for before Python 3.12 counting lines takes most of the tests' time again.
coverage: $(VENV)/.installed-test
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
		$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term

lint: $(VENV)/.installed-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The stamps are files, so that a second call installs nothing.
$(VENV)/.installed: pyproject.toml planner/version.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) .venv-*
