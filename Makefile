# One command each: `make plan` sets up and plans the main example, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: plan test examples clean

plan: $(VENV)/.installed
	$(BIN)/flopwatt plan examples/mixed_fleet.json

# The pages of docs/examples/ anew.
examples: $(VENV)/.installed
	@mkdir -p docs/examples
	for name in mixed_fleet_year compute_network_year; do \
		$(BIN)/flopwatt plan examples/$$name.json --format md --output docs/examples/$$name.md || exit $$?; \
	done

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile

# The stamps are files, so that a second call installs nothing.
$(VENV)/.installed: pyproject.toml planner/version.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV)
