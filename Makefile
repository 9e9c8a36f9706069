# Everything a user or contributor starts is here; `make help` lists it.
# INVENTORY=hosts.ini     the nodes that `make preflight` reads; without it, this machine
# ARGS="--limit worker-3" more arguments for ansible-playbook, or for pytest
.DEFAULT_GOAL := help
.PHONY: help setup setup-test preflight test unit integration gates lint docs docsite picture bench clean setup-docsite setup-lab setup-whole test-lab lab-up lab-down lab-status lab-ssh

# What Python has compiled is kept, or each of the many programs that are started would compile the same anew.
unexport PYTHONDONTWRITEBYTECODE

LOCAL := -i localhost, -c local -e ansible_python_interpreter='{{ ansible_playbook_python }}'
TARGETS := $(if $(INVENTORY),-i $(INVENTORY),$(LOCAL))
# Three side by side keep two cores busy, since many wait for an answer or for its lack. tests/conftest.py says what stays together.
PYTEST := .venv/bin/pytest -n $(or $(JOBS),3) --dist loadfile --no-loadscope-reorder -r fEs

help: ## List what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## Make .venv with pinned versions of all that a preflight needs
	@sh requirements/venv.sh run

setup-test: setup
	@sh requirements/venv.sh test
	@sh requirements/debian.sh
	@sh requirements/birds.sh

preflight: setup ## Read this machine (or INVENTORY=...), judge it and report; fails when the findings say so
	@.venv/bin/ansible-playbook playbooks/preflight.yml $(TARGETS) $(ARGS); code=$$?; \
	test -n "$(ARGS)" || echo "To read it in a browser: $(CURDIR)/nodecare-report/report.html"; exit $$code

test: setup-test ## All tests and gates
	@$(PYTEST) tests/gates tests/integration tests/unit $(ARGS)

unit: setup-test ## Rules, probes and parsers against recorded machines
	@$(PYTEST) tests/unit $(ARGS)

integration: setup-test ## Real sshd, real network namespaces, a real browser
	@$(PYTEST) tests/integration $(ARGS)

gates: setup-test ## What Ansible's and our own rules ask of the collection
	@$(PYTEST) tests/gates $(ARGS)

lint: setup-test ## The quick gates only
	@$(PYTEST) tests/gates/test_style.py $(ARGS)

docs: setup-test ## Write the pages about the rules anew
	@.venv/bin/python docs/generate_rules.py

setup-docsite: setup-test
	@sh requirements/venv.sh docsite

docsite: setup-docsite ## Build the site of all guides, rules, plugins and roles, in .cache/docsite
	@.venv/bin/python docs/build_docsite.py .cache/docsite

picture: setup-test ## Take the README's picture of a report anew
	@.venv/bin/python docs/picture.py

bench: setup-test ## Measure against `ansible -m ping` and `-m setup`, and judge 1000 nodes
	@.venv/bin/python tests/bench/run.py $(ARGS)

setup-lab: setup-test
	@sh requirements/venv.sh lab

setup-whole: setup-lab setup-docsite
	@sh requirements/debian.sh debian-lab.txt
	@sh requirements/prometheus.sh
	@sh requirements/awx.sh

FIRST := tests/lab/test_life.py
test-lab: $(if $(SCENARIO),setup-lab,setup-whole) ## All tests on real nodes, or SCENARIO=preflight_faults only (root; see lab/README.md)
	@.venv/bin/python -m lab check
ifdef SCENARIO
	@.venv/bin/pytest tests/lab -vv -s -r fEs -k "$(SCENARIO)" $(ARGS)
else
# First, alone, what looks at all of this machine (nothing, where ARGS picks other tests: 5); then the rest in lanes (tests/lanes.py).
	@.venv/bin/pytest $(FIRST) -vv -s -r fEs $(ARGS); first=$$?; if [ $$first = 5 ]; then first=0; fi; \
	.venv/bin/pytest tests/lab $(FIRST:%=--ignore=%) -n 3 --dist loadfile --no-loadscope-reorder -vv -r fEs --durations=25 $(ARGS) && exit $$first
endif

LAB := python3 -m lab --id $(or $(LAB_ID),lab)

lab-up: ## Boot a real cluster: NODES=2 LAYER=calico, cluster, nodes, or fleet: only SSH targets (root; see lab/README.md)
	@$(LAB) up --nodes $(or $(NODES),2) --layer $(or $(LAYER),calico) $(ARGS)

lab-down: ## Take them away, also after a crash
	@$(LAB) down

lab-status: ## What of the lab runs
	@$(LAB) status

lab-ssh: ## A shell on a node: NODE=n1
	@$(LAB) ssh $(or $(NODE),n1)

clean: ## Remove what was made: virtual environments, caches, reports
	rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis .ansible nodecare-report
