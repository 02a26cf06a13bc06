GO ?= go

# By name in Debian: what the tests need, and what else the
# benchmarks compare with.
TEST_PACKAGES = gcc libc6-dev etcd-server nftables iptables iproute2 conntrack tcpdump arping ndisc6 frr bird2 nginx libnginx-mod-http-headers-more-filter libnginx-mod-http-geoip2 libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson nghttp2-client util-linux curl openssl
PEER_PACKAGES = haproxy wrk keepalived

# Packages of one goroutine, their tests included, as test/house sees to: there the
# race detector sees nothing and takes four times as long.
SEQUENTIAL = ./api/... ./lbpool ./cluster/snapshot ./cluster/manifest ./cluster/loadbalancer ./cluster/printable \
	./cluster/ingressclass ./controller/assign ./speaker/due ./speaker/announce ./speaker/ownership ./speaker/bgp/fsm \
	./speaker/bfd/session ./proxy/exchange ./proxy/nginxconf ./proxy/snippet ./proxy/route ./command/explain ./command/migrate ./test/house ./test/lint ./test/chart ./test/image

# What stands in the lab imports every client of Kubernetes, which nothing else does. It is
# compiled once, as e2e is, and not for the race detector, too.
LAB = ./test/lab ./test/scale

raced = $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(1) | grep -v '/test/e2e$$' | grep -vxF "$$($(GO) list $(SEQUENTIAL) $(LAB))")
RACED = $(call raced,./...)

# Of the raced these watch the network, or keep every processor busy. The others wait most
# of their time, or make time up.
WATCHFUL = $(call raced,./proxy ./speaker/... ./test/...)
CALM = $$($(GO) list $(RACED) | grep -vxF "$$($(GO) list $(WATCHFUL))")

# Tests that the race detector would spoil, since it allocates itself and is slow,
# or that time themselves: they run alone.
QUICK = Alloc|Quick|ManyAddresses
QUICK_PACKAGES = $$(grep -rlE 'func Test[A-Za-z]*($(QUICK))' --include='*_test.go' lbpool cluster controller speaker proxy test/bench | \
	xargs -n1 dirname | sort -u | sed 's,^,./,')

.PHONY: build cross test unit e2e lab bench bench-proxy bench-failover bench-bgp soak fuzz generate image release lint vulnerabilities packages test-packages

VERSION ?= dev
BUILD_FLAGS = -trimpath -buildvcs=false -ldflags='-s -w -X main.version=$(VERSION)'

build: ## the binary, ./quayside; VERSION=v1.2.3
	CGO_ENABLED=0 $(GO) build $(BUILD_FLAGS) -o quayside .

# Each is compiled from nothing, which takes minutes of processor time, so this is not
# part of test: the release does it. The tag portable leaves out what needs Linux, and so
# the demo is run here as it runs elsewhere.
PLATFORMS = linux/amd64 linux/arm64 linux/arm/7 darwin/amd64 darwin/arm64 windows/amd64

cross: ## the binary for every platform that is released, in bin; minutes
	CGO_ENABLED=0 $(GO) test -tags portable -count=1 -run "Demo|ExitCodes" ./command
	@for p in $(PLATFORMS); do set -- $$(echo $$p | tr / ' '); \
	out=bin/quayside-$$1-$$2$${3:+v$$3}; test $$1 != windows || out=$$out.exe; echo $$out; \
	CGO_ENABLED=0 GOOS=$$1 GOARCH=$$2 GOARM=$$3 $(GO) build $(BUILD_FLAGS) -o $$out . || exit 1; done

generate: ## deepcopy code and CRDs from api, the pages of options and of metrics
	$(GO) tool controller-gen object paths=./api/... crd paths=./api/... output:crd:dir=charts/quayside/crds
	CGO_ENABLED=0 $(GO) test -count=1 -run '^TestPageOfOptions$$' ./proxy/route -write-page
	CGO_ENABLED=0 $(GO) test -count=1 -run '^TestPageOfMetrics$$' ./command -write-page

image: build ## the OCI image in bin/image, without a container engine
	$(GO) run ./test/image/build -version $(VERSION) linux/$$($(GO) env GOARCH)=quayside

release: cross ## what is released, in bin/release: binaries, their SBOMs, chart, checksums; the image for all platforms in bin/image
	$(GO) run ./test/image/build -version $(VERSION) \
	linux/amd64=bin/quayside-linux-amd64 linux/arm64=bin/quayside-linux-arm64 linux/arm/v7=bin/quayside-linux-armv7 \
	darwin/amd64=bin/quayside-darwin-amd64 darwin/arm64=bin/quayside-darwin-arm64 windows/amd64=bin/quayside-windows-amd64.exe
	rm -rf bin/release && mkdir -p bin/release && cp bin/quayside-*-* bin/release
	$(GO) run ./test/chart/pack -version $(VERSION) -out bin/release
	cd bin/release && sha256sum * >SHA256SUMS

# Compilers and the vet tool end soon, and so collect less garbage than tests should: that
# takes a tenth of the time that they take.
BRIEF = GOGC=400

# Kubernetes and MetalLB are built while the unit tests wait, once lint has compiled what
# they share with us. Where they are not ready in time, e2e waits for them.
test: test-packages lint ## everything; root adds the lab's tests
	@$(BRIEF) CGO_ENABLED=0 nice -n 19 $(GO) run ./test/lab/up -build &
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory e2e

# Without a C compiler there is no race detector. In CI that is a failure.
RACE = $$({ command -v $$($(GO) env CC) || test -n "$$CI"; } >/dev/null && echo -race || echo 'no C compiler, so no race detector' >&2)

# Where a process ends, the race detector waits for a second for other goroutines
# to run into a race. They do that while the tests run, and nodes of a fleet end often.
unit: export GORACE = atexit_sleep_ms=50

# Neither this nor e2e vets again what lint has: go test would, with flags of its own,
# so that every dependency is analysed anew, and once more with the race detector.
NO_VET = -vet=off

# Compiled side by side (and not linked: that is done for each run). Then those that watch
# the network run one after the other: a starved watcher sees what is not there. Those that
# watch nothing may meet.
unit: ## the tests that need no cluster, with the race detector where goroutines meet
	CGO_ENABLED=0 $(GO) test $(NO_VET) -timeout 15m -skip '$(QUICK)' $(SEQUENTIAL)
	cd test/chart/rules && CGO_ENABLED=0 $(GO) test -count=1 . # a module of its own, of files beyond it
	cd test/h2spec && CGO_ENABLED=0 $(GO) test -count=1 . # another
	@$(BRIEF) $(GO) list -export -test $(RACE) $(RACED) >/dev/null
	$(GO) test $(NO_VET) $(RACE) -timeout 15m $(CALM)
	$(GO) test $(NO_VET) $(RACE) -p 1 -timeout 15m $(WATCHFUL)
	CGO_ENABLED=0 $(GO) test $(NO_VET) -p 1 -timeout 15m $(LAB)
	CGO_ENABLED=0 $(GO) test $(NO_VET) -p 1 -run '$(QUICK)' $(QUICK_PACKAGES)

# One package, so nothing else competes with it for the processors. Without cgo
# it shares its build with the product and with Kubernetes. What fails on a machine that has
# no time left is run again alone, and named.
e2e: ## the tests in the lab; skipped, or with CI set failed, where none can run
	CGO_ENABLED=0 $(GO) run ./test/again $(NO_VET) -count=1 -timeout 45m ./test/e2e

soak: ## the same with the lengths that the issues name; QUAYSIDE_SEED=1000 draws other worlds
	QUAYSIDE_SOAK=1 CGO_ENABLED=0 $(GO) test -count=1 -timeout 6h -v ./controller/assign ./speaker/... ./proxy ./test/e2e

FUZZTIME ?= 1m

# The compiler instruments all that a target needs, which takes minutes the first time.
# Making an input shorter that reaches something new may take a minute, if it is let.
fuzz: ## each fuzz target of the tree for FUZZTIME (1m), one after the other; what one finds it leaves in testdata
	@found=; for target in $$(grep -roE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' . | sed -E 's,/[^/]*:func ,:,' | sort); do \
	package=$${target%:*}; name=$${target#*:}; \
	out=$$(CGO_ENABLED=0 $(GO) test $(NO_VET) -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$package 2>&1) || { found="$$found $$package:$$name"; echo "$$out"; }; \
	echo "$$package $$name: $$(echo "$$out" | grep -oE 'execs: [0-9]+' | tail -n 1)"; \
	done; test -z "$$found" || { echo "these found something:$$found"; exit 1; }

lab: ## a cluster with Quayside in it, and a shell on its LAN; ARGS='-nodes 5 -kube-proxy iptables -ipv6'
	CGO_ENABLED=0 $(GO) run ./test/lab/up $(ARGS)

bench: ## figures of the data plane and the compilers, peers in the same run
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-proxy: packages ## CPU time per request beside nginx and HAProxy, each kind of traffic; ten minutes
	CGO_ENABLED=0 $(GO) run ./test/bench/http -work each
	CGO_ENABLED=0 $(GO) run ./test/bench/http -http2
	CGO_ENABLED=0 $(GO) run ./test/bench/http -grpc
	CGO_ENABLED=0 $(GO) run ./test/bench/http -churn

bench-failover: packages ## deaths of nodes and of speakers, measured on the LAN beside keepalived, and what a proxy's clients notice; half an hour
	CGO_ENABLED=0 $(GO) run ./test/bench/silent
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench Failover -benchtime 20x -timeout 60m ./test/e2e

bench-bgp: packages ## BGP and BFD with FRR as the router, and as the speaker beside ours; five minutes
	CGO_ENABLED=0 $(GO) run ./test/bench/bgp

lint: ## gofmt, and what vet and staticcheck look for
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }
	CGO_ENABLED=0 $(BRIEF) $(GO) build -buildvcs=false -o bin/lint ./test/lint
	CGO_ENABLED=0 $(BRIEF) $(GO) vet -vettool=bin/lint ./...
	CGO_ENABLED=0 $(BRIEF) $(GO) vet -vettool=bin/lint -tags portable ./proxy/serve ./proxy/socket ./proxy/upstream

# With the Go that go.mod names, which is what the release is built with.
vulnerabilities: ## known ones in what we call, by the Go vulnerability database; each needs an answer
	GOTOOLCHAIN=$$($(GO) mod edit -json | sed -n 's/.*"Toolchain": "\(.*\)".*/\1/p') $(GO) run ./test/vulnerabilities

packages: ## Debian packages of the lab and of the benchmarks' peers
	@$(call install,$(TEST_PACKAGES) $(PEER_PACKAGES))

test-packages: # what the tests cannot do without
	@$(call install,$(TEST_PACKAGES))

# Quick when all are there. One that cannot be had is named, and does not keep
# the others away: the test that needs it says so, too.
define install
missing=; for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
if test -z "$$missing"; then exit 0; fi; \
if ! command -v apt-get >/dev/null; then echo "not Debian: install what belongs to$$missing yourself"; exit 0; fi; \
if test "$$(id -u)" != 0; then echo "not root, so not installed:$$missing"; exit 0; fi; \
export DEBIAN_FRONTEND=noninteractive; apt-get update -q; \
apt-get install -q -y --no-install-recommends $$missing </dev/null && exit 0; \
for p in $$missing; do apt-get install -q -y --no-install-recommends $$p </dev/null || echo "could not install $$p"; done
endef
