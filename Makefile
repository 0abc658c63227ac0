# `make run` serves, `make test` checks everything. Both make what they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test accuracy audit drills load bench env dev-env browser format lock clean
.DEFAULT_GOAL := run

run: env
	@exec $(BIN)/headroom serve

env: .venv/made
dev-env: .venv/made-dev

# Python is looked at before anything is made, so that an old one is one sentence.
.venv/made: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "headroom: there is no $(PYTHON); install Python 3.11 or newer, or say make PYTHON=/path/to/python." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "headroom: $(PYTHON) is `$(PYTHON) -V 2>&1`; Python 3.11 or newer is needed, e.g. make PYTHON=python3.12." >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "headroom: $(PYTHON) lacks the venv module; on Debian: apt install python3-venv." >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $@

.venv/made-dev: .venv/made requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# A browser for the browser tests: the system's Chromium where there is one, on
# Debian as root from apt, elsewhere the one that Playwright brings.
browser: dev-env
	@$(BIN)/python -m tests.browser.install

test: dev-env browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/headroom check content
	$(BIN)/python -m pytest -q -n auto

# Every reference case that the project knows, answered and compared.
accuracy: env
	@$(BIN)/headroom accuracy

# Kills, full disks, restarts of databases, damaged backups: many times over. With
# HEADROOM_TEST_DATABASE_URL they are done to PostgreSQL as well.
drills: dev-env
	HEADROOM_TEST_DRILLS=25 $(BIN)/python -m pytest -q -n 2 tests/drills tests/upkeep tests/db/test_upgrading.py tests/browser/test_crash.py

# Attacks on a server of its own, and what is known of the packages: minutes.
audit: .venv/made-audit
	@$(BIN)/python -m tests.audit

.venv/made-audit: .venv/made-dev requirements-audit.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-audit.lock
	@touch $@

# What 2,000 learners cost one, and fifty at once. Takes some minutes.
load: dev-env
	@$(BIN)/python -m benchmarks.scale

bench: dev-env
	@$(BIN)/python -m benchmarks.http

format: dev-env
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: dev-env
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --group build -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --group audit -c requirements-dev.lock -o requirements-audit.lock

clean:
	rm -rf .venv
