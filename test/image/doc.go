// Package image builds Quayside's OCI image without a container engine: the
// static binary, the user it runs as, and nothing else. The Dockerfile builds
// the same for those who have an engine; a test here keeps the two alike.
//
// It keeps one promise: the same binary gives the same digest, on every
// machine and every day. No file carries a time, an owner's name or a path of
// the machine that built it.
//
// An SBOM (CycloneDX) says what is in the binary, as the binary itself tells.
//
// Read image.go first; build is the command behind `make image`.
package image
