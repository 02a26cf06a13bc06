# The image of Quayside: one static binary and nothing else. `make image`
# builds the same without a container engine.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY main.go ./
COPY api api
COPY cluster cluster
COPY command command
COPY controller controller
COPY lbpool lbpool
COPY proxy proxy
COPY speaker speaker
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /quayside .

FROM scratch
COPY --from=build --chmod=555 /quayside /quayside
USER 65532:65532
ENTRYPOINT ["/quayside"]
