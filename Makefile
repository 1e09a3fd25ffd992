# Two commands matter: `make bench` and `make test`. `make help` lists the rest.
# PYTHON=python3.13 uses another interpreter, with a separate virtual environment.

PYTHON ?= python3
VENV ?= .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
ifndef RUN_DIR
RUN_DIR := results/quick-$(shell date +%Y%m%d-%H%M%S)
endif
# A quick comparison: gunicorn on its own and two application servers behind Nginx, or both on their own if Nginx is missing,
# without a cache and with whole pages cached in Django, on a visit of several pages. Pages written as files would come out
# alike behind each Nginx, and minutes do not tell one from the other.
# Rounds are made of the cases that may be the best, until one leads or the time is up: what is left of four minutes after
# the installation, less some seconds for the report. Two rounds are always made.
# STACKS="granian uvicorn" LAYERS="none varnish" BUDGET=10m looks at others, or longer.
STACKS ?= gunicorn $(if $(shell command -v nginx),nginx-gunicorn nginx-uwsgi,uwsgi)
LAYERS ?= none page-cache
ENDS := $(shell expr $$(date +%s) + 230)
BUDGET ?= $$((left > 1 ? left : 1))s
QUICK := $(addprefix --stack ,$(STACKS)) $(addprefix --layer ,$(LAYERS)) --workload session --connections 16 \
	--until-decided --max-time $(BUDGET) --duration 2

# Every system server, service, load tool, browser and checker of files that stacks, layers, benchmarks and tests can use.
PACKAGES := nginx apache2 apache2-dev gcc python3-dev lighttpd lighttpd-mod-openssl lighttpd-mod-deflate lighttpd-modules-lua \
	haproxy caddy varnish memcached redis-server postgresql pgbouncer wrk apache2-utils siege sqlite3 openssl chromium docker-compose logrotate
# What only tests look for: hosts that they boot, which are reached by SSH and have a firewall, and what install notes use.
# mmdebstrap makes those of Debian's releases.
TEST_PACKAGES := systemd-container dbus openssh-server nftables iproute2 git curl python3-venv postgresql-client \
	mmdebstrap debian-archive-keyring arch-test

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
MODWSGI := mod_wsgi>=5,<7

# What a production host installs, pinned with hashes for each of these Pythons.
PYTHONS := 3.11 3.12 3.13 3.14
UV := $(BIN)/uv --quiet
COMPILE := $(UV) pip compile --universal --python-version $(firstword $(PYTHONS)) --generate-hashes \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
# The packages of an extra of pyproject.toml.
EXTRA := $(BIN)/python -c 'import sys, tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")'

.DEFAULT_GOAL := help
.PHONY: help bench docs test test-fast test-hosts test-matrix servers modwsgi lint format examples lock lock-check audit dist clean venv

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

bench: venv  ## everything from a fresh clone to a report: environment, a million rows, a quick comparison
	@left=$$(($(ENDS) - $$(date +%s))); $(BIN)/python -m bench run $(QUICK) --output $(RUN_DIR); status=$$?; \
	if test -e $(RUN_DIR)/run.json; then $(BIN)/python -m bench report $(RUN_DIR) || exit; fi; exit $$status

docs: $(VENV)/.installed-dev  ## the documentation site, below docs/_build
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo "docs/_build/index.html"

# The tests start Python hundreds of times, so modules are compiled once, whatever the caller's environment says.
# Servers and commands of the kit read compiled modules, and write none.
test test-fast test-hosts test-matrix: export PYTHONDONTWRITEBYTECODE :=
test test-fast test-hosts test-matrix: compiled

.PHONY: compiled
compiled: $(VENV)/.installed-dev
	@$(BIN)/python -m compileall -q bench benchapp benchapp_overlay config

# ARGS goes to pytest: make test ARGS="tests/app -x"
test: $(VENV)/.installed-dev $(VENV)-projects/.installed $(VENV)-psycopg3/.installed  ## everything from a fresh clone to a green test run
	@# Twice as many processes as cores: with more, each test waits so long for its servers that a slow machine fails it.
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)

test-fast: $(VENV)/.installed-dev  ## the tests that start no servers
	@# Some of them wait for a TTL to end: twice as many processes as cores fill the time.
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not servers" $(ARGS)

test-hosts: $(VENV)/.installed-dev  ## the tests of a site on several hosts, and on booted ones with Debian 12 and 13 (root, about half an hour)
	@# The tests of a file and of a release share their hosts. They wait a lot, so that four processes fill two cores.
	$(BIN)/python -m pytest -m hosts -n 4 --dist loadfile $(ARGS)

test-matrix: $(VENV)/.installed-dev $(VENV)-projects/.installed  ## the stacks and layers of which make test tries only what shows each server and protocol once
	$(BIN)/python -m pytest -n 4 --dist worksteal -m matrix $(ARGS)

servers:  ## install every server, and what the tests need, on Debian or Ubuntu (as root or with sudo)
	@command -v apt-get > /dev/null || { echo "make servers: no apt-get here; install: $(PACKAGES) $(TEST_PACKAGES)" >&2; exit 2; }
	@test "$$(id -u)" = 0 || command -v sudo > /dev/null || { echo "make servers: run it as root or install sudo" >&2; exit 2; }
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update
	$(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PACKAGES) $(TEST_PACKAGES)

modwsgi: $(VENV)/.installed  ## build mod_wsgi for this Python (needs apache2-dev and a compiler)
	$(PIP) --force-reinstall '$(MODWSGI)'

lint: $(VENV)/.installed-dev  ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@# Packages of Debian are those of its release with its security updates: no version is named.
	$(BIN)/hadolint --ignore DL3008 Containerfile

format: $(VENV)/.installed-dev  ## fix style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: $(BIN)/uv  ## pin what a production host installs, with hashes; UPGRADE=1 takes newer versions
	$(EXTRA) servers | $(COMPILE) -o requirements.lock -
	echo '$(MODWSGI)' | $(COMPILE) -o requirements-modwsgi.lock -

lock-check: $(BIN)/uv  ## check that the pins fit the extra servers and install on every supported Python
	cp requirements.lock $(VENV)/checked.lock
	$(EXTRA) servers | $(COMPILE) -o $(VENV)/checked.lock -
	cmp requirements.lock $(VENV)/checked.lock
	cp requirements-modwsgi.lock $(VENV)/checked.lock
	echo '$(MODWSGI)' | $(COMPILE) -o $(VENV)/checked.lock -
	cmp requirements-modwsgi.lock $(VENV)/checked.lock
	for version in $(PYTHONS); do $(UV) pip install --dry-run --require-hashes --only-binary :all: --python-version $$version \
		--target $(VENV)/no-such-folder -r requirements.lock || exit; done

dist: $(BIN)/uv  ## build the wheel and the sdist, below dist/, and check what an index page shows of them
	rm -rf dist
	$(UV) build --out-dir dist
	$(UV) tool run 'twine>=6,<8' check --strict dist/*

audit: $(BIN)/uv  ## look for published holes of the pinned packages
	$(UV) tool run --from 'pip-audit>=2.9,<3' pip-audit --strict --disable-pip --require-hashes \
		-r requirements.lock -r requirements-modwsgi.lock

$(BIN)/uv: $(VENV)/.installed
	$(PIP) 'uv>=0.9,<1'

examples: $(VENV)/.installed-dev  ## write deploy/examples again, after a change of a template or a value
	$(BIN)/python -m tests.deploy.examples

clean:  ## remove virtual environments, caches, databases and collected files; results stay
	rm -rf .venv .venv-* var .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(VENV)/.installed  ## make the virtual environment, .venv
	@# mod_wsgi is compiled for one Python, so it is built here if it can be, also if Apache came after the environment.
	@# Its stacks are skipped elsewhere.
	@! command -v apxs > /dev/null || test -e "$$($(BIN)/mod_wsgi-express module-location 2> /dev/null)" || \
		$(PIP) --force-reinstall '$(MODWSGI)' || \
		echo "make: mod_wsgi could not be built; its stacks will be skipped; make modwsgi shows why" >&2

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is not Python 3.11 or newer with venv; name one: make PYTHON=python3.13" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@echo "make: installing benchapp and its servers into $(VENV); this takes a minute or two"
	@# Editable: the command `benchapp` of the environment is this clone, from any folder.
	$(PIP) --editable '.[servers,completion,debug]'
	@touch $@

# Of projects that the tests serve, on the oldest Django that the kit serves; their packages stay out of its environment.
$(VENV)-projects/.installed:
	@echo "make: installing Wagtail, django-allauth and Celery into $(VENV)-projects"
	$(PYTHON) -m venv $(VENV)-projects
	$(VENV)-projects/bin/python -m pip install --quiet --disable-pip-version-check 'Django>=4.2,<5' 'wagtail>=7,<7.1' 'django-allauth>=65,<66' 'celery>=5.5,<6' redis psycopg2-binary
	@touch $@

# Django takes psycopg 3 as soon as it can be imported: it has a separate folder, which tests add to PYTHONPATH.
$(VENV)-psycopg3/.installed: $(VENV)/.installed
	@echo "make: installing psycopg 3 into $(VENV)-psycopg3"
	rm -rf $(VENV)-psycopg3
	$(EXTRA) psycopg3 | xargs -d '\n' $(PIP) --target $(VENV)-psycopg3
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed | venv
	@echo "make: installing what tests and lint need into $(VENV)"
	$(PIP) --editable '.[dev]'
	@touch $@
