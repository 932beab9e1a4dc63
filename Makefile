# make        builds bin/husk
# make help   says what else there is

# sudo and cron leave Go's directory out of PATH; a Go that is older than go.mod's fetches that one.
export PATH := $(PATH):/usr/local/go/bin:$(lastword $(sort $(wildcard /usr/lib/go-*/bin))):/snap/bin
export GOTOOLCHAIN ?= auto
# Root in somebody else's clone gets no version stamp from git; the version is set by hand below.
export GOFLAGS += -buildvcs=false
# Not sh: make then looks programs up in the PATH above, not in its own.
SHELL := /bin/bash

PREFIX  ?= /usr/local
DESTDIR ?=
SUDO    := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
AS_ROOT := $(if $(SUDO),$(SUDO) -E env "PATH=$$PATH")

VERSION := $(shell git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null || echo dev)
TAGS    := netgo osusergo runc_nocriu urfave_cli_no_docs
# One static file that is not relocated at start: both save time at each start.
LDFLAGS := -s -w -linkmode external -extldflags "-static -no-pie" -X main.version=$(VERSION)
GOBUILD := CGO_ENABLED=1 go build -trimpath -buildmode=exe -tags "$(TAGS)" -ldflags '$(LDFLAGS)'

ARCH       := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,amd64)
OTHER_ARCH := $(if $(filter arm64,$(ARCH)),amd64,arm64)
CROSS_CC   := $(if $(filter arm64,$(OTHER_ARCH)),aarch64,x86_64)-linux-gnu-gcc

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 10s

.DEFAULT_GOAL := build
.PHONY: help demo build build-$(OTHER_ARCH) husk check test test-unit test-root test-vm test-fuzz bench install clean

help: ## say what there is to make
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

demo: ## set up, build, and run one command in a sandbox
	script/setup demo
	$(MAKE) husk
	$(AS_ROOT) bin/husk run --json -- python3 -c 'print(6*7)'

build: husk ## build bin/husk, and the same for the other architecture if its compiler is there
	@if command -v $(CROSS_CC) >/dev/null; then $(MAKE) build-$(OTHER_ARCH); else \
	echo "husk: bin/husk-linux-$(OTHER_ARCH) is not built: no $(CROSS_CC) (as root, script/setup build installs it)"; fi

husk:
	$(GOBUILD) -o bin/husk ./cmd/husk

build-$(OTHER_ARCH):
	CC=$(CROSS_CC) GOOS=linux GOARCH=$(OTHER_ARCH) $(GOBUILD) -o bin/husk-linux-$(OTHER_ARCH) ./cmd/husk

check: ## set up, then everything that reads the source: format, vet, staticcheck, structure, the guest's rebuild
	script/setup check
	@unformatted=$$(gofmt -l $$(find . -name '*.go' -not -path './bin/*')); \
	[ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted"; exit 1; }
	go vet -tags "$(TAGS)" ./...
	go run $(STATICCHECK) -tags "$(TAGS)" ./...
	go test -tags "$(TAGS)" ./test/structure
	runtime/internal/guest/build.sh --check

test: ## set up, then all tests: as you are, as root here, as root on pure cgroup v2 with 6.1 and 6.12, fuzzing
	script/setup test
	$(MAKE) test-unit
	$(MAKE) test-root
	$(MAKE) test-vm
	$(MAKE) test-fuzz

test-unit: ## the tests that need no root
	go test -short -tags "$(TAGS)" -skip '^TestRoot' $$(go list ./... | grep -v /test/integration)

test-root: husk ## the tests that need root, on this kernel
	test/suite/build bin/test
	$(AS_ROOT) test/suite/run bin/test

test-vm: husk ## the same in virtual machines with pure cgroup v2
	test/suite/build bin/test
	test/suite/vms bin/test

test-fuzz: ## each fuzz target for FUZZTIME (10s)
	test/fuzz $(FUZZTIME)

bench: ## set up, then measure against the floor, runc and docker, as root
	script/setup bench
	$(MAKE) husk
	go build -tags "$(TAGS)" -o bin/bench ./bench
	$(AS_ROOT) bin/bench

install: husk ## put bin/husk into DESTDIR/PREFIX/bin
	install -D -m 755 bin/husk $(DESTDIR)$(PREFIX)/bin/husk

clean: ## remove what was built
	rm -rf bin
