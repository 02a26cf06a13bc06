// Package manifest turns the text of a manifest file into objects, as the API
// server would: strictly, with the server's defaults, and Ingresses of versions
// that no server serves any more converted to the present one.
//
// It is pure; the bytes come from cluster. It keeps three promises. Every error names
// file, document, line and field. Every error is reported, not only the first, and the
// documents without one are returned all the same; whether to use them is the caller's
// choice. And a kind that Quayside does not read is noted, not refused: a folder may hold
// Deployments too.
//
// Most documents are plain YAML, which plain.go reads; of those it is not sure of the
// YAML library has the word.
//
// Read decode.go first, then kinds.go.
package manifest
