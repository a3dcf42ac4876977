# Everything runs in a virtual environment inside the checkout; all a fresh machine needs is Python 3.11 or
# later, and Java 17 or later for what touches Spark and the Java implementation of the format.
#
#   make demo     the flights of New York 2013 through a managed table, in Python and in Spark
#   make demo-sql the same flights, only in SQL (DuckDB; ARGS="--sql spark" for Spark)
#   make demo-kafka   a table with a topic on a real broker, a writer and two readers (needs Java and Maven)
#   make demo-stream  a day of flights, streamed by Spark into a table and from it to a live board (ARGS=--kafka: through a topic)
#   make demo-mt  a flights board as materialized tables in SQL files: applied, refreshed, changed (DuckDB; ARGS=--spark for Spark)
#   make up       the whole system in containers: PostgreSQL, an S3 store, Kafka, the service with its pages, a demo that writes (needs Docker)
#   make down     stops it (ARGS=--volumes drops its data too)
#   make test     the tests that a change needs, warnings as errors (make test ARGS="tests/lsm -x" for some of them)
#   make test-deep    the tests that take seconds each: killed writers, brokers that die, random programs
#   make test-lowest  a smoke suite on the oldest dependencies that pyproject.toml allows, in an environment of their own
#   make test-spark SPARK=4.0.5   a smoke suite on an older Spark, in an environment of its own
#   make test-dbt     the suites that dbt has for adapters, on the adapter in connectors/dbt, in an environment of its own
#   make test-recipes  the recipes for Dagster and Airflow on these, in environments of their own (make test-recipes RECIPES=dagster)
#   make coverage the tests of a part, and the lines of tablestore that they do not run (make coverage ARGS=tests/lsm)
#   make lint     ruff and strict type checking
#   make docs     the documents as a site in build/docs; a broken link fails
#   make release  the distributions in dist/, as a package index would take them (TAG=v0.1.0 compares the version with a tag)
#   make bench    the benchmarks, with their floors and peers (make bench ARGS="run --quick" measures other table stores beside)
#   make clean    what these made, .venv included
#
# PYTHON=python3.12 chooses the interpreter. LOCK=.ci/requirements.txt installs just these packages, by their hashes. pip's own settings (PIP_*, proxies) are left as they are.

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
SPARK ?= 4.0.5
OLDER_SPARK := .venv-spark-$(SPARK)
DBT := .venv-dbt
BIN := $(VENV)/bin
ARGS ?=
WORKERS ?= 2

# A new stamp name for every pyproject.toml: what is installed always is what it says.
STAMP := $(VENV)/.installed-$(shell cksum < pyproject.toml | cut -d' ' -f1)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of Python processes: without stored bytecode each of them compiles tablestore again.
export PYTHONDONTWRITEBYTECODE :=
# Spark's workers have to be the interpreter that has tablestore installed.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: demo demo-sql demo-kafka demo-stream demo-mt up down test coverage test-deep test-lowest test-spark test-dbt test-recipes lint docs release bench clean install oracles
.DEFAULT_GOAL := test

install: $(STAMP)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "make: '$(PYTHON)' is not Python 3.11 or later; install one, or name it: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "make: cannot create $(VENV); on Debian and Ubuntu: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	@echo "installing tablestore and its tools into $(VENV)"
	@$(BIN)/python -m pip uninstall --quiet --yes tablestore 2>/dev/null # the distribution's name of before
ifneq ($(LOCK),)
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
	@$(BIN)/python -m pip install --quiet --editable '.[all,dev]'
endif
	@rm -f $(VENV)/.installed-*
	@touch $@

demo: $(STAMP)
	@$(BIN)/python -m examples.flights $(ARGS)

demo-sql: $(STAMP)
	@$(BIN)/python -m examples.flights --sql duckdb $(ARGS)

demo-kafka: $(STAMP)
	@$(BIN)/python -m tablestore.testing.kafka $(BIN)/python -m examples.flights.kafka $(ARGS)

demo-stream: $(STAMP)
	@$(if $(filter --kafka,$(ARGS)),$(BIN)/python -m tablestore.testing.kafka) $(BIN)/python -m examples.flights.stream $(ARGS)

demo-mt: $(STAMP)
	@$(BIN)/python -m examples.flights.materialized $(ARGS)

# The demo is a profile: make up PROFILE= leaves it out.
PROFILE ?= demo
COMPOSE := docker compose $(if $(PROFILE),--profile $(PROFILE))

up:
	@$(COMPOSE) up --detach --wait --build $(ARGS)
	@echo "the pages: http://127.0.0.1:8181/page"
	@echo "user: any; password: $$(docker compose exec -T catalog cat /var/lib/tablestore/token)"

# All of it, whatever was started.
down:
	@docker compose --profile demo down $(ARGS)

# A worker that dies is a failure and is not started again: pytest-xdist 3.8 waits for ever for the new one.
PYTEST := $(BIN)/python -m pytest --quiet -n $(WORKERS) --dist loadgroup --max-worker-restart=0

test: $(STAMP) oracles
	@$(PYTEST) $(ARGS)

test-deep: $(STAMP) oracles
	@$(PYTEST) -m "deep and not slow" $(ARGS)

coverage: $(STAMP)
	@$(PYTEST) --cov --cov-report=term-missing:skip-covered $(ARGS)

# fastavro that old reads zstandard blocks, which the tests do, by another package than today's.
test-lowest:
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(PYTHON) -m tests.floors.lowest constraints > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt --editable '.[cli]' pytest hypothesis zstandard
	@$(LOWEST)/bin/python -m tests.floors.lowest run $(ARGS)

# Its own packages, and no others that would bring the newest Spark; CI must not skip what has no Java.
test-spark:
	@$(PYTHON) -m venv --clear $(OLDER_SPARK)
	@$(OLDER_SPARK)/bin/python -m pip install --quiet --editable '.[spark]' 'pyspark==$(SPARK)' pytest pytest-xdist hypothesis
	@PYSPARK_PYTHON=$(CURDIR)/$(OLDER_SPARK)/bin/python $(OLDER_SPARK)/bin/python -m tests.floors.sparks run $(SPARK) $(ARGS)

# dbt holds packages at versions of its own. Without Java its tests on Spark are left out: make test-dbt EXTRAS=duckdb
EXTRAS ?= duckdb,spark
test-dbt:
	@$(PYTHON) -m venv --clear $(DBT)
	@$(PYTHON) -m tests.floors.dbt requirements > $(DBT)/requirements.txt
	@$(DBT)/bin/python -m pip install --quiet --editable '.[$(EXTRAS)]' --requirement $(DBT)/requirements.txt
	@PYSPARK_PYTHON=$(CURDIR)/$(DBT)/bin/python WORKERS=$(WORKERS) $(DBT)/bin/python -m tests.floors.dbt run $(ARGS)

# Each orchestrator holds packages at versions of its own.
RECIPES ?= dagster airflow
test-recipes:
	@for name in $(RECIPES); do \
	  $(PYTHON) -m venv --clear .venv-$$name && \
	  $(PYTHON) -m tests.floors.recipes requirements $$name > .venv-$$name/requirements.txt && \
	  .venv-$$name/bin/python -m pip install --quiet --editable '.[duckdb]' --requirement .venv-$$name/requirements.txt && \
	  .venv-$$name/bin/python -m tests.floors.recipes run $$name $(ARGS) || exit 1; \
	done

# The other implementations that the interop tests talk to. Without them those tests are skipped, except in CI.
oracles: $(STAMP)
	@if ! test -f tests/interop/setup_oracles.py; then :; \
	elif test -n "$$CI"; then $(BIN)/python tests/interop/setup_oracles.py; \
	elif command -v java >/dev/null && command -v mvn >/dev/null; then \
	  $(BIN)/python tests/interop/setup_oracles.py || echo "interop oracles are not complete: their tests will be skipped"; \
	else echo "no Java or no Maven here: the interop tests will be skipped"; fi

lint: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet $(ARGS)
	@echo "the documents are in build/docs: open build/docs/index.html"

release: $(STAMP)
	@version="$$($(BIN)/hatchling version)"; test -z "$(TAG)" || test "v$$version" = "$(TAG)" || \
	  { echo "make: the tag $(TAG) is not that of version $$version in tablestore/__init__.py" >&2; exit 1; }
	@rm -rf dist && $(BIN)/hatchling build && $(BIN)/twine check --strict dist/*

bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) $(LOWEST) $(DBT) .venv-spark-* .cache .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
