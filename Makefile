# Everything a checkout needs: `make run` serves the site, `make test` runs the tests.
# Each installs what is missing into .venv first, and only when the requirements changed.

SHELL := /bin/sh
HOST ?= 127.0.0.1
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
# Of the tests: one more than processors on a small machine, since many of them wait for a browser or a lease.
# 0 runs them in one, as a debugger wants it.
PROCESSES ?= 3

# An environment beside it, for what demands older packages than ours: Strands, and nothing of this site.
STRANDS ?= .venv-strands

# The first interpreter that fits; say PYTHON=… to choose another.
PYTHON ?= $(shell for one in python3.11 python3.12 python3.13 python3; do \
	$$one -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& echo $$one && break; done)

# The stamps carry a checksum: a changed list of requirements is installed, an old checkout is not.
RUN_STAMP := $(VENV)/.run-$(firstword $(shell cksum requirements.txt))
STRANDS_STAMP := $(STRANDS)/.strands-$(firstword $(shell cksum requirements-strands.txt))
DEV_STAMP := $(VENV)/.dev-$(firstword $(shell cksum requirements-dev.txt))

SOURCES := agentsite operations agui api mcpdoor terminal v1 timers comparisons brief evals pipelines learning receipts teams_app titles schedules subagents programs approvals deadletters folders hooks mcpservers prompts recall retention sharedfiles skillsets spending steering timelines tryouts workers \
	chat keeping notices conversations agents vaults documents decay memory skills_app rendering tools_app owndata audit mcpclients webhooks sandbox accounts live wire jobs providers net harness reading \
	bench tests manage.py
COMPILE := $(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --generate-hashes \
	--python-version 3.11

# The tests start hundreds of processes; without byte code each of them compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

# Checks touch neither this machine's settings nor its data.
TESTING := DJANGO_SETTINGS_MODULE=agentsite.settings_test AGENTSITE_ENV_FILE=

.DEFAULT_GOAL := help
.PHONY: help run up-scaled kill-matrix between chaos chaos-schedules fuzz contract-api test journeys messages map contract followers attack attack-web conformance check bench format lock diagrams embeddings langgraph strands install install-dev deploy-check clean

help: ## List the targets.
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /	/'

run: $(RUN_STAMP) ## Prepare what is missing and serve: make run [HOST=…] [PORT=…]
	@exec $(BIN)/python manage.py up --host $(HOST) --port $(PORT)

up-scaled: $(DEV_STAMP) ## PostgreSQL, Redis, two web processes, two workers, beat: what many machines run.
	@exec $(BIN)/python manage.py up_scaled --host $(HOST) --port $(PORT)

kill-matrix: $(DEV_STAMP) ## Kill a conversation at every commit point, in every form.
	$(BIN)/python -m tests.killing
	$(BIN)/python -m tests.killing --process worker --compaction
	$(BIN)/python -m tests.killing --database postgresql
	$(BIN)/python -m tests.killing --database postgresql --process worker
	$(BIN)/python -m tests.killing --mcp
	$(BIN)/python -m tests.killing --mcp --database postgresql --process worker
	$(BIN)/python -m tests.killing --composed
	$(BIN)/python -m tests.killing --composed --database postgresql --process worker
	$(BIN)/python -m tests.killing --tree
	$(BIN)/python -m tests.killing --tree --database postgresql --process worker
	$(BIN)/python -m tests.killing --analysis
	$(BIN)/python -m tests.killing --analysis --database postgresql --process worker

between: $(DEV_STAMP) ## Do everything outsiders may do between any two appends of a run, in two processes: make between [ARGS="-k worker"]
	BETWEEN=$${BETWEEN:-all} $(BIN)/python -m pytest -n 2 --dist worksteal \
		tests/conversations/test_between_appends.py $(ARGS)

chaos: $(DEV_STAMP) ## Fifty conversations while processes are killed and Redis restarts.
	CHAOS=1 $(BIN)/python -m pytest tests/scale/test_chaos.py tests/scale/test_many_runs.py -s

chaos-schedules: $(DEV_STAMP) ## 200 schedules over two workers and two beats that are killed: make chaos-schedules [ARGS="--orders 50"]
	$(BIN)/python -m tests.schedules.chaos $(ARGS)

fuzz: $(DEV_STAMP) ## Send 5,000 malformed frames to a live socket: make fuzz [ARGS="--frames 500 --seed 1"]
	$(BIN)/python -m tests.seed_protocol.fuzz $(ARGS)

contract-api: $(DEV_STAMP) ## Hold every door to the OpenAPI document, as alice and as mallory.
	MISTAKES=all CONTRACT_EXAMPLES=$${CONTRACT_EXAMPLES:-150} $(BIN)/python -m pytest \
		tests/seed_protocol/test_schema.py tests/contract/test_schema.py tests/architecture/test_refusals.py

test: $(DEV_STAMP) ## Run every test, in three processes: make test [ARGS="tests/accounts -k keys"] [PROCESSES=0]
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder $(ARGS)

journeys: $(DEV_STAMP) ## Every journey in every form, desk and phone, light and dark: make journeys [ARGS="-k queue"]
	JOURNEYS=all $(BIN)/python -m pytest tests/journeys $(ARGS)

contract: $(DEV_STAMP) ## Unmodified clients of many versions against a live server: make contract [ARGS="-k stream"]
	$(BIN)/python -m pytest tests/contract $(ARGS)
	$(BIN)/python -m tests.clients

followers: $(DEV_STAMP) ## Hundreds of clients who lose the line: make followers [ARGS="--clients 200 --turns 5"]
	$(BIN)/python -m tests.followers $(ARGS)

attack: $(DEV_STAMP) ## Attack every sandbox: make attack [ARGS="--backend process --verbose"]
	$(BIN)/python -m tests.sandbox.attack $(ARGS)
	@if [ "$$(id -u)" -eq 0 ]; then $(BIN)/python -m tests.sandbox.attack --as-user $(ARGS); fi

attack-web: $(DEV_STAMP) ## Attack the site itself: make attack-web [ARGS="--quick --subject addresses --verbose"]
	$(BIN)/python -m tests.attack_web $(ARGS)

check: $(DEV_STAMP) deploy-check ## Lint, types, import floors, templates, map, migrations, schema, settings.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	find templates -name '*.html' -print0 | xargs -0 $(BIN)/djade --check
	$(BIN)/python -m tests.catalogues --check
	$(BIN)/python -m tests.mapping --check
	$(TESTING) $(BIN)/python manage.py check --fail-level WARNING
	$(TESTING) $(BIN)/python manage.py makemigrations --check --dry-run
	$(TESTING) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

conformance: $(DEV_STAMP) ## Have the official MCP runner (npm) try our client and /mcp: make conformance [ARGS="server"]
	$(BIN)/python -m tests.conformance $(ARGS)

bench: $(DEV_STAMP) ## Measure against the budgets: make bench [ARGS="--quick --only B7 --json FILE"]
	$(BIN)/python -m bench $(ARGS)

deploy-check: $(DEV_STAMP) ## Django's deployment checks, on a safe production environment.
	@AGENTSITE_ENV_FILE= AGENTSITE_ENV=production AGENTSITE_DATA_DIR=$$(mktemp -d) \
	AGENTSITE_BASE_URL=https://agents.example.org AGENTSITE_ALLOWED_HOSTS=agents.example.org \
	AGENTSITE_SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') \
	AGENTSITE_VAULT_KEY=$$($(BIN)/python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())') \
	$(BIN)/python manage.py check --deploy --fail-level WARNING

messages: $(DEV_STAMP) ## Take new words into the catalogues of locale/ and compile them. Needs gettext.
	$(BIN)/python -m tests.catalogues

map: $(DEV_STAMP) ## Draw docs/map, the map of the code, from the code.
	$(BIN)/python -m tests.mapping

format: $(DEV_STAMP) ## Bring code and templates into their form.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	find templates -name '*.html' -print0 | xargs -0 $(BIN)/djade || true

lock: $(BIN)/uv ## Resolve the requirements anew from pyproject.toml.
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) pyproject.toml --group dev --constraint requirements.txt -o requirements-dev.txt
	$(COMPILE) pyproject.toml --extra openshell --constraint requirements.txt -o requirements-openshell.txt
	$(COMPILE) pyproject.toml --extra langgraph --constraint requirements-dev.txt -o requirements-langgraph.txt
	$(COMPILE) --group installer -o requirements-uv.txt
	$(COMPILE) --group diagrams --constraint requirements-dev.txt -o requirements-diagrams.txt
	$(COMPILE) --group strands -o requirements-strands.txt
	$(COMPILE) --no-deps --group embeddings --constraint requirements-dev.txt -o requirements-embeddings.txt

embeddings: $(BIN)/uv ## Install what finds memories and documents by meaning, about 200 MB; nothing else needs it.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements-embeddings.txt

langgraph: $(BIN)/uv ## Install what drives pipelines with "engine: langgraph"; nothing else needs it.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-langgraph.txt

diagrams: $(BIN)/uv ## Install what draws diagrams that agents write as Mermaid; without it their source is shown.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-diagrams.txt

strands: $(STRANDS_STAMP) ## Install what drives pipelines with "engine: strands", beside the rest: make strands [STRANDS=DIR]

install: $(RUN_STAMP) ## Install what running needs.
install-dev: $(DEV_STAMP) ## Install what developing needs.

clean: ## Remove the environment and the caches; the data stays.
	rm -rf $(VENV) $(STRANDS) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-uv.txt

# uv is faster; where it cannot be had, or does not know pip's own settings, pip does the same.
define install
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-uv.txt 2>/dev/null \
	&& $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1) 2>/dev/null \
	|| $(BIN)/python -m pip install --quiet --require-hashes -r $(1)
endef

$(RUN_STAMP): | $(BIN)/python
	$(call install,requirements.txt)
	@rm -f $(VENV)/.run-* && touch $@

$(STRANDS_STAMP): | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-uv.txt 2>/dev/null \
	&& $(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(STRANDS) 2>/dev/null \
	&& $(BIN)/uv pip install --quiet --python $(STRANDS)/bin/python --require-hashes -r requirements-strands.txt 2>/dev/null \
	|| { $(BIN)/python -m venv $(STRANDS) \
	&& $(STRANDS)/bin/python -m pip install --quiet --require-hashes -r requirements-strands.txt; }
	@rm -f $(STRANDS)/.strands-* && touch $@

# Tests have the real package, wherever it lives.
$(DEV_STAMP): | $(BIN)/python $(STRANDS_STAMP)
	$(call install,requirements-dev.txt)
	@rm -f $(VENV)/.dev-* $(VENV)/.run-* && touch $@ $(RUN_STAMP)
