# Every check that decides whether a change is good is a target here; CI runs `make test`.

# The steps of `test` are an order, not a set.
.NOTPARALLEL:
.DEFAULT_GOAL := help

CARGO ?= cargo

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: postgres ## Run a gateway with a database of its own; ARGS="--nodes 2" and the like are passed on.
	$(CARGO) run --locked -- dev $(ARGS)

.PHONY: test
test: test-fmt test-clippy test-doc test-sqlx test-run ## Check everything: format, lints, docs, .sqlx, tests.

.PHONY: test-fmt
test-fmt: ## Check the formatting.
	$(CARGO) fmt --check

.PHONY: test-clippy
test-clippy: ## Check the lints.
	$(CARGO) clippy --locked --all-targets -- -D warnings

.PHONY: test-doc
test-doc: ## Check that the documentation builds, private items included.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

.PHONY: test-sqlx
test-sqlx: postgres ## Check that .sqlx matches the queries and the migrations.
	scripts/prepare --check

.PHONY: test-run
test-run: postgres haproxy ## Run the tests; ARGS="a_name -- --nocapture" and the like are passed on.
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

.PHONY: bench
bench: postgres ## Measure speed and memory, as ratios to references of the same run; takes some fifteen minutes.
	scripts/with-postgres --durable $(CARGO) bench --locked --bench countersign-bench

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

.PHONY: postgres
postgres:
	@scripts/install-postgres

.PHONY: haproxy
haproxy:
	@scripts/install-haproxy
