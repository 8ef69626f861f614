# Plimsoll. Every target first installs or builds what it needs; `make help` lists them.
#
#   make demo         serve a scratch share, drive it with eight clients, find its load limit (about 12 minutes, build included)
#   make run DIR=…    serve a directory
#   make test         the gate: every deterministic check (docs/testing.md)
#   make test-long    what runs long, at random, or measures the machine; NAME="fuzz soak", LIST=1 lists the names
#   make conformance  a foreign test suite: SUITE=pynfs DIR=CHECKOUT, SUITE=litmus, SUITE=iscsi, SUITE=smbtorture
#   make rdma         NFS over RDMA with a Linux client in User Mode Linux; builds its kernel once (10 minutes)
#   make check        the quick part of it: format, lints, tidy, licences
#   make bench        measure the published figures (bench/README.md)
#   make deb          build the Debian package, target/debian/plimsoll_*.deb (docs/howto/install.md)
#   make ui           build the browser interface
#   make deps         install the Debian packages that the tests use (needs root)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
UI_SOURCES := $(wildcard ui/package.json ui/index.html ui/*.ts ui/*.js ui/*.mjs) \
	$(shell find ui/src ui/public -type f 2>/dev/null)

.PHONY: help demo run test test-long conformance rdma check bench deb ui deps build build-deps release

help:
	@sed -n '3,13s/^# \{0,2\}//p' Makefile

demo: release
	"$(TARGET)/release/plimsoll" demo

run: release
	@[ -n "$(DIR)" ] || { echo 'say which directory to serve: make run DIR=/some/folder' >&2; exit 2; }
	"$(TARGET)/release/plimsoll" serve "$(DIR)" $(ARGS)

release: build-deps ui
	$(CARGO) build --release --locked -p plimsoll

deb: release
	packaging/deb $(ARGS)

# The debug build that the tests start.
build: build-deps ui
	$(CARGO) build --locked -p plimsoll

test: deps ui
	.ci/test

test-long: ui
ifdef LIST
	@.ci/test-long --list
else
	.ci/deps long
	.ci/test-long $(NAME)
endif

conformance: ui
	.ci/deps conformance
	.ci/conformance "$(SUITE)" "$(DIR)"

rdma: ui
	.ci/deps rdma
	.ci/test-long rdma

check: build-deps ui
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) xtask tidy
	$(CARGO) xtask deny

bench: deps release
	@[ -x bench/run ] || { echo 'bench/run is not there: nothing is published yet' >&2; exit 1; }
	bench/run $(ARGS)

deps:
	.ci/deps test

build-deps:
	@.ci/deps build

# Without ui/ (a source package without the interface) the binary embeds a page that says so.
ifneq ($(wildcard ui/package.json),)
ui: ui/dist/index.html

ui/node_modules/.package-lock.json: ui/package-lock.json
	cd ui && npm ci --no-audit --no-fund
	@touch $@

ui/dist/index.html: ui/node_modules/.package-lock.json $(UI_SOURCES)
	cd ui && npm run build
	@touch $@
else
ui:
	@echo 'no ui/ here: the browser interface is left out'
endif
