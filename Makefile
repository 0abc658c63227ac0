# `make run` serves, `make test` checks everything. Both make what they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test types style layers compiled course evidence audit drills net load bench docs env dev-env browser format lock clean
.DEFAULT_GOAL := run
# Where compiled modules are not kept, each server that a test starts compiles the app.
unexport PYTHONDONTWRITEBYTECODE

run: env
	@exec $(BIN)/headroom serve

env: .venv/made
dev-env: .venv/made-dev

# uv installs in a tenth of the time that pip takes. Where it cannot (a platform without
# it, an index that only pip's settings name), pip installs the same files.
INSTALL = install() { $(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" 2>/dev/null || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$@"; }; install

# Python is looked at before anything is made, so that an old one is one sentence.
.venv/made: requirements-uv.lock requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "headroom: there is no $(PYTHON); install Python 3.11 or newer, or say make PYTHON=/path/to/python." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "headroom: $(PYTHON) is `$(PYTHON) -V 2>&1`; Python 3.11 or newer is needed, e.g. make PYTHON=python3.12." >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "headroom: $(PYTHON) lacks the venv module; on Debian: apt install python3-venv." >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements-uv.lock 2>/dev/null
	@echo "headroom: installing what requirements.lock names"
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation --no-index -e .
	@touch $@

.venv/made-dev: .venv/made requirements-dev.lock
	@echo "headroom: installing what requirements-dev.lock names"
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# A browser for the browser tests: the system's Chromium where there is one, on
# Debian as root from apt, elsewhere the one that Playwright brings.
browser: dev-env
	@$(BIN)/python -m tests.browser.install

TESTS = --dist worksteal --ignore=tests/drills -m "not drill"
test: dev-env browser
	@$(MAKE) --no-print-directory --jobs=2 types style layers compiled
	$(BIN)/python -m pytest -q -n auto $(TESTS)

# What is looked at without being run, the longest first and two at a time.
types:
	$(BIN)/mypy
style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
layers:
	$(BIN)/lint-imports
# Each process of the tests would compile every module beside the others, and all but one
# would wait until that has read the course: while one core looks at types, the other does
# both once. What fails here, the tests say.
compiled:
	@$(BIN)/python -m pytest -q $(TESTS) -k shipped_course_has_no_problem >/dev/null 2>&1 || true
course:
	$(BIN)/headroom check content

# Every reference case that the project knows, answered and compared. The result, which
# the accuracy pages show, is written anew.
evidence: env
	@$(BIN)/python -m evidence

# Kills, full disks, restarts of databases, damaged backups, and drawn examples of what
# holds for any value: many times over. With HEADROOM_TEST_DATABASE_URL the drills are
# done to PostgreSQL as well.
drills: export HEADROOM_TEST_DRILLS = 25
drills: dev-env
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/drills tests/upkeep tests/database/test_upgrading.py
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m drill
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "hypothesis or drawn"

# That the app does what it did when `python -m tests.net record` last ran: for changes
# that move and rename.
net: dev-env
	@$(BIN)/python -m tests.net compare

# Attacks on a server of its own, and what is known of the packages: minutes.
audit: .venv/made-audit
	@$(BIN)/python -m tests.audit

.venv/made-audit: .venv/made-dev requirements-audit.lock
	@echo "headroom: installing what requirements-audit.lock names"
	@$(INSTALL) --require-hashes -r requirements-audit.lock
	@touch $@

# What 2,000 learners cost one, and fifty at once. Takes some minutes.
load: dev-env
	@$(BIN)/python -m benchmarks.scale

bench: dev-env
	@$(BIN)/python -m benchmarks.http
	@$(BIN)/python -m benchmarks.played

# The parts of docs/ that are made from the code.
docs: dev-env
	@$(BIN)/python -m docs.reference

format: dev-env
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: dev-env
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --group install -o requirements-uv.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --group build -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes pyproject.toml --group audit -c requirements-dev.lock -o requirements-audit.lock

clean:
	rm -rf .venv
