# Every check of a change is a target here; CI runs `make test`. Programs that are missing are installed from Debian's or
# Ubuntu's packages, except make and cargo.

# The steps of `test` run in this order.
.NOTPARALLEL:
.DEFAULT_GOAL := help

CARGO ?= cargo

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: $(if $(findstring --database-url,$(ARGS)),tools,postgres) ## Run a gateway with its own database; ARGS="--nodes 2" and the like are passed on.
	@scripts/install curl openssl || echo 'going on: only the examples in the README need them' >&2
	$(CARGO) run --locked -- dev $(ARGS)

.PHONY: test
test: test-fmt test-clippy test-doc test-sqlx test-page test-run ## Check everything: format, lints, docs, .sqlx, the page, tests.

.PHONY: test-fmt
test-fmt: tools ## Check the formatting.
	$(CARGO) fmt --check

.PHONY: test-clippy
test-clippy: tools ## Check the lints, with and without `countersign dev`.
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --no-default-features -- -D warnings

.PHONY: test-doc
test-doc: tools ## Check that the documentation builds, private items included.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

.PHONY: test-sqlx
test-sqlx: postgres ## Check that .sqlx matches the queries and the migrations.
	scripts/prepare --check

.PHONY: test-page
test-page: ## Check the types of the approvers' page, and run its own tests.
	@scripts/install node tsc
	tsc --project web
	node --test web/tests/*.test.mjs

.PHONY: test-run
test-run: postgres ## Run the tests; ARGS="a_name -- --nocapture" and the like are passed on.
	@scripts/install chromedriver chromium curl firefox haproxy nginx openssl
	$(CARGO) test --locked $(ARGS)

.PHONY: fmt
fmt: ## Format the code.
	$(CARGO) fmt

.PHONY: prepare
prepare: postgres ## Regenerate .sqlx after a query or a migration has changed.
	scripts/prepare

.PHONY: audit
audit: ## Check the dependencies' licenses, sources and, where they can be fetched, advisories.
	@command -v cargo-deny >/dev/null || { \
		echo 'cargo-deny is missing: building it, which takes a few minutes'; \
		$(CARGO) install --locked cargo-deny; }
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
	$(CARGO) cyclonedx --quiet --all --format json --spec-version 1.5 --no-default-features --target x86_64-unknown-linux-gnu
	mkdir -p target && mv countersign.cdx.json target

.PHONY: pin-images
pin-images: ## Pin the images in deploy/Dockerfile and docker-compose.yml to today's digests; needs Docker and a network; ARGS=--check only checks.
	scripts/pin-images $(ARGS)

.PHONY: bench
bench: postgres ## Measure speed and memory, as ratios to references of the same run; takes some fifteen minutes.
	scripts/with-postgres --durable $(CARGO) bench --locked --bench countersign-bench

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

.PHONY: tools
tools:
	@command -v $(CARGO) >/dev/null || { \
		echo 'cargo is missing: install Rust 1.90 or later, see https://www.rust-lang.org/tools/install' >&2; exit 1; }
	@scripts/install cc

.PHONY: postgres
postgres: tools
	@scripts/install postgresql
