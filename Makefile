# make help prints the targets.

BIN      := .build/bin
GOLANGCI := $(BIN)/golangci-lint
# Pinned: a linter that changes by itself breaks builds by itself.
GOLANGCI_VERSION := v2.15.0
FUZZTIME ?= 30s

.PHONY: help build test race fuzz lint fmt guests bench bench-log bench-context bench-dispatch bench-runtime bench-guests proof soak demo check clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the longshore binary
	CGO_ENABLED=0 go build -trimpath -o longshore ./cmd/host

test: ## run the tests
	go test -timeout 20m ./substrate ./... # the longest first

race: ## run the tests under the race detector
	go test -race -short -timeout 20m ./substrate ./...

fuzz: ## fuzz each parser of untrusted bytes for FUZZTIME
	@set -e; for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
	  done; \
	done

$(GOLANGCI):
	GOBIN=$(abspath $(BIN)) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

lint: $(GOLANGCI) ## vet and lint every module
	go vet ./...
	$(GOLANGCI) run ./...
	cd guests/go && GOOS=wasip1 GOARCH=wasm go vet ./...
	cd examples/orders/guests && GOOS=wasip1 GOARCH=wasm go vet ./...
	cd bench && go vet ./... && $(abspath $(GOLANGCI)) run -c ../.golangci.yml ./...

fmt: $(GOLANGCI) ## format the sources
	$(GOLANGCI) fmt ./...

guests: ## build the guests from source and run their tests
	cd guests/go && go test ./...
	go test -v -timeout 15m ./guests/... # which prints its figures
	go test -timeout 15m ./examples/... ./cmd/host/internal/scaffold

bench: bench-log bench-runtime bench-guests bench-context bench-dispatch ## run all benchmarks that print figures

bench-log: ## benchmark the log against a raw file and JetStream
	cd bench && go run ./log $(if $(BENCH_SHORT),-short)

bench-context: ## benchmark signed contexts against the path of a message
	cd bench && go run ./context $(if $(BENCH_SHORT),-short)

bench-runtime: ## benchmark guests against plain wazero and wasmtime; needs clang and wasm-ld
	cd bench && CGO_ENABLED=1 go run ./runtime $(if $(BENCH_SHORT),-short)

bench-dispatch: ## benchmark the whole path of a message, beside JetStream and Extism; needs clang and wasm-ld
	cd bench && go run ./dispatch $(if $(BENCH_SHORT),-short)

bench-guests: ## benchmark what guests pay to publish a batch; needs clang and wasm-ld
	cd bench && go run ./guests $(if $(BENCH_SHORT),-short)

proof: ## try to break the log for 4 minutes, or an hour with LONG=1
	go run ./internal/proof

SOAK_SECONDS ?= $(if $(LONG),600,60)

soak: ## drive and kill hosts for a minute, or ten with LONG=1, and count what each message came to
	SOAK_SECONDS=$(SOAK_SECONDS) go test -v -count=1 -timeout 40m -run '^TestSoak$$' ./cmd/host/crashtest

demo: ## see the whole job done
	go run ./cmd/host demo

check: lint test race guests ## what CI runs
	git diff --exit-code

clean: ## remove what was built
	rm -rf .build longshore
