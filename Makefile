GO ?= go

.PHONY: build test lab bench bench-failover soak generate image lint packages

build: ## the binary, ./quayside
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o quayside .
