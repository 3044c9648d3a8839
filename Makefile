# `make dev` runs the gateway, `make test` the tests, `make check` everything else that a change must pass. Programs that are missing are
# installed from Debian's or Ubuntu's packages, except make and cargo.

# The steps of `check` and `test` run in this order.
.NOTPARALLEL:
.DEFAULT_GOAL := help

CARGO ?= cargo
CARGO_DENY := 0.20.2
# Whole builds: files for the next incremental one would make them slower.
test check: export CARGO_INCREMENTAL ?= 0
# Most tests wait more than they compute, so that two of them fit on a core. They run in two processes, where a
# test has 512 open files to itself; and PostgreSQL has connections for sixteen tests.
CORES := $(shell getconf _NPROCESSORS_ONLN)
FILES := $(patsubst unlimited,8192,$(shell ulimit -H -n))
export CARGO
export RUST_TEST_THREADS ?= $(shell printf '%s\n' 16 $$(($(CORES) * 2)) $$(($(FILES) / 256)) | sort -n | head -1)

BUILD_PROGRAMS := cargo cc postgresql
TEST_PROGRAMS := $(BUILD_PROGRAMS) chromedriver chromium curl firefox haproxy nginx node openssl

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: ## Run a gateway with its own database; ARGS="--nodes 2" and the like are passed on.
	@scripts/install cargo cc $(if $(findstring --database-url,$(ARGS)),,postgresql) --wanted curl openssl
	$(CARGO) run --locked -- dev $(ARGS)

.PHONY: install
install: ## Build the program as a release, and put it into cargo's directory of programs.
	@scripts/install cargo cc
	$(CARGO) install --path . --locked --force $(ARGS)

.PHONY: test
test: ## Run the tests: the page, units, nodes on a private PostgreSQL, browsers.
	@scripts/install cargo cc
	@scripts/beside '$(CARGO) test --locked --workspace --no-run' '$(MAKE) --no-print-directory test-programs test-page'
	@$(MAKE) --no-print-directory test-run

.PHONY: test-programs
test-programs:
	@scripts/install $(TEST_PROGRAMS)

.PHONY: test-fast
test-fast: test-page ## Run the tests of pure code, which need neither PostgreSQL nor a browser; ARGS="a_name" and the like are passed on.
	@scripts/install cargo cc
	$(CARGO) test --locked --workspace --test protocol --test e2e --test countersign-fast $(ARGS)

.PHONY: test-page
test-page: ## Run the tests of the approvers' page, in Node.js.
	@scripts/install node
	node --import ./web/tests/node18.mjs --test web/tests/*.test.mjs

.PHONY: test-sdk-fast
test-sdk-fast: ## Run the tests of the client libraries that need no gateway.
	@scripts/install python3 node npm
	@scripts/beside '$(MAKE) --no-print-directory test-sdk-python' '$(MAKE) --no-print-directory test-sdk-typescript'

.PHONY: test-sdk-python test-sdk-typescript
test-sdk-python:
	scripts/sdk-python fast || { [ $$? = 75 ] && echo 'warning: PyPI cannot be reached, so the Python library was not tested' >&2; }
test-sdk-typescript:
	scripts/sdk-typescript fast || { [ $$? = 75 ] && echo 'warning: npm cannot be reached, so the TypeScript library was not tested' >&2; }

.PHONY: test-sdk
test-sdk: postgres ## Check the client libraries and run all of their tests, against a real gateway too.
	$(CARGO) build --locked
	scripts/sdk-python all
	scripts/sdk-typescript all
	scripts/sdk-cross

.PHONY: test-sdk-newest
test-sdk-newest: ## Test the adapters of the client libraries with the newest published agent frameworks.
	status=0; for library in python typescript; do scripts/sdk-$$library newest || status=1; done; exit $$status

.PHONY: sdk-packages
sdk-packages: ## Build the packages of the client libraries: target/sdk-packages.
	scripts/sdk-python package
	scripts/sdk-typescript package

.PHONY: test-run
test-run: test-programs ## Run the Rust tests; ARGS="a_name -- --nocapture" and the like are passed on.
	scripts/with-postgres sh -c 'export TEST_DATABASE_URL="$$DATABASE_URL"; unset DATABASE_URL; exec "$$@"' sh \
		$(if $(ARGS),$(CARGO) test --locked $(ARGS),scripts/run-tests)

.PHONY: check
check: check-programs check-fmt check-clippy check-doc check-sqlx check-page check-deny ## Check everything but the tests: format, lints, documentation, .sqlx, types of the page, dependencies.

.PHONY: check-programs
check-programs:
	@scripts/install $(BUILD_PROGRAMS) node tsc

.PHONY: check-fmt
check-fmt: ## Check the formatting.
	@scripts/install cargo
	$(CARGO) fmt --all --check

.PHONY: check-clippy
check-clippy: ## Check the lints: of everything, without `countersign dev`, and of the clients alone.
	@scripts/install cargo cc
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --no-default-features --features gateway -- -D warnings
	$(CARGO) clippy --locked --no-default-features --features client -- -D warnings

.PHONY: check-doc
check-doc: ## Check that the documentation builds, private items included.
	@scripts/install cargo cc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

.PHONY: check-sqlx
check-sqlx: postgres ## Check that .sqlx matches the queries and the migrations.
	scripts/prepare --check

.PHONY: check-page
check-page: ## Check the approvers' page: its types, unused names, format and lints.
	@scripts/install node tsc
	tsc --project web
	@scripts/biome ci || { [ $$? = 75 ] && echo 'warning: Biome could not be fetched, so the page was not linted' >&2; }

.PHONY: fmt
fmt: ## Format the code.
	$(CARGO) fmt --all
	scripts/biome check --write

.PHONY: api-documents
api-documents: ## Write openapi.json and asyncapi.json after their YAML has changed; a test compares them.
	WRITE_API_DOCUMENTS=1 $(CARGO) test --locked --test countersign-fast the_json_documents_are_those_of_the_yaml_sources

.PHONY: prepare
prepare: postgres ## Regenerate .sqlx after a query or a migration has changed.
	scripts/prepare

.PHONY: check-deny
check-deny: ## Check the dependencies' licenses, sources and, where the database can be fetched, advisories.
	@scripts/install cargo cc
	@[ "$$($(CARGO) deny --version 2>/dev/null)" = "cargo-deny $(CARGO_DENY)" ] || { \
		echo 'cargo-deny $(CARGO_DENY) is missing: building it, which takes a few minutes'; \
		$(CARGO) install --debug --locked cargo-deny@$(CARGO_DENY); }
	$(CARGO) deny --locked check licenses bans sources
	@if $(CARGO) deny fetch db; then \
		$(CARGO) deny --locked check --disable-fetch advisories; \
	else \
		echo 'warning: the advisory database could not be fetched, so advisories were not checked' >&2; \
	fi

.PHONY: sbom
sbom: ## List every crate in the released binary: target/countersign.cdx.json (CycloneDX).
	@command -v cargo-cyclonedx >/dev/null || { \
		echo 'cargo-cyclonedx is missing: building it, which takes a few minutes'; \
		$(CARGO) install --locked cargo-cyclonedx@0.5.9; }
	$(CARGO) cyclonedx --quiet --all --format json --spec-version 1.5 --no-default-features --features gateway --target x86_64-unknown-linux-gnu
	mkdir -p target && mv countersign.cdx.json target && rm -f crates/*/*.cdx.json

.PHONY: pin-images
pin-images: ## Pin the images in deploy/Dockerfile and docker-compose.yml to today's digests; needs Docker and a network; ARGS=--check only checks.
	scripts/pin-images $(ARGS)

.PHONY: bench
bench: postgres ## Measure speed and memory, as ratios to references of the same run; takes a quarter of an hour.
	scripts/with-postgres --durable $(CARGO) bench --locked --bench countersign-bench
	if [ -z "$$BENCH_ONLY" ] && [ -w /dev/shm ]; then TMPDIR=/dev/shm BENCH_MEMORY=1 BENCH_ONLY=exchanges \
	    scripts/with-postgres --durable $(CARGO) bench --locked --bench countersign-bench; fi

.PHONY: chaos
chaos: postgres ## Inject faults into a cluster and check what clients were told; some ten minutes; ARGS="--self-test" and the like are passed on.
	@scripts/install haproxy
	@scripts/install faketime || echo 'going on: only the fault "clock" needs it' >&2
	@$(if $(findstring --patroni,$(ARGS)),scripts/install patroni etcd)
	$(CARGO) bench --locked --bench countersign-chaos -- $(ARGS)

.PHONY: agents
agents: postgres ## Prove the hooks with the real agents, from npm (over 1 GB), and a model on loopback; ARGS="--agents claude" and the like are passed on.
	@scripts/install node npm
	@mkdir -p target/agents && cp tests/live/package.json target/agents
	npm install --prefix target/agents --ignore-scripts --no-audit --no-fund --loglevel error
	@cd target/agents/node_modules/@anthropic-ai/claude-code && node install.cjs
	@cd target/agents/node_modules/opencode-ai && node postinstall.mjs
	$(CARGO) test --locked --bench countersign-agents -- $(ARGS)

.PHONY: pictures
pictures: ## Renew the pictures of the documents, from the views that the browser tests keep.
	$(MAKE) test-run ARGS="--test countersign-tests -- browser::views"
	@mkdir -p docs/images
	cp target/page/inbox-desktop-light.png docs/images/inbox.png
	cp target/page/request-patch-desktop-light.png docs/images/patch.png
	cp target/page/request-command-phone-light.png docs/images/phone.png
	cp target/page/pair-phone-light.png docs/images/pairing.png

.PHONY: page-check
page-check: postgres ## Look at every view of the page in Chromium: accessibility, speed, two devices, Lighthouse; needs npm; ARGS="--only speed" and the like are passed on.
	@scripts/install chromium node npm
	@mkdir -p target/page-check && cp tests/page-check/package.json target/page-check
	npm install --prefix target/page-check --ignore-scripts --no-audit --no-fund --loglevel error
	$(CARGO) build --locked
	node tests/page-check/main.mjs $(ARGS)

.PHONY: api-check
api-check: postgres ## Drive a node with schemathesis, as everyone, by its own /openapi.json; needs Python and PyPI.
	$(CARGO) build --locked
	scripts/api-check

.PHONY: compat
compat: postgres ## Run published client libraries of an older dialect against a gateway; needs Python and PyPI.
	$(CARGO) build --locked
	scripts/compat

FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: ## Fuzz what reads callers' bytes, FUZZ_SECONDS for each target; needs a nightly toolchain and a C++ compiler.
	@command -v cargo-fuzz >/dev/null || { echo 'cargo-fuzz is missing: building it'; $(CARGO) install --locked cargo-fuzz; }
	cd tests/fuzz && for target in fuzz_targets/*.rs; do \
		$(CARGO) +nightly fuzz run --fuzz-dir . "$$(basename "$$target" .rs)" -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 || exit 1; \
	done

.PHONY: clean
clean: ## Remove everything that was built.
	$(CARGO) clean

.PHONY: postgres
postgres:
	@scripts/install $(BUILD_PROGRAMS)
