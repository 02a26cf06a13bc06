GO ?= go

.PHONY: build test lab bench bench-failover soak generate image lint packages

build: ## the binary, ./quayside
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o quayside .

generate: ## deepcopy code and CRDs from controller/api
	$(GO) tool controller-gen object paths=./controller/api/... crd paths=./controller/api/... output:crd:dir=charts/quayside/crds

image: build ## the OCI image in bin/image, without a container engine
	$(GO) run ./test/image/build -binary quayside -out bin/image
