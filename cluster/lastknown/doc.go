// Package lastknown encodes and decodes the last known state of a cluster, for a process that
// starts while the API server is away.
//
// Package cluster imports it, and stores the bytes in a file. The format is its own: a magic
// word, a checksum (SHA-256) of the rest, when the cluster was last reached, an identifier of the
// cluster, which parts of which kinds had been read, and the objects: protobuf where the API
// supports it, else JSON. Kinds are written by name, so that a version with other kinds refuses
// the file.
//
// It keeps these promises: what is not valid in full is refused in full; no length in the data
// is used before that many bytes are there.
//
// Read lastknown.go.
package lastknown
