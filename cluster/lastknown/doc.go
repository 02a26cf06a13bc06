// Package lastknown writes down what is known of a cluster, and reads it again: for a
// process that starts while the API server is away.
//
// Package cluster imports it, and sees to the file. The format is our own: a magic
// word, a checksum (SHA-256) over the rest, when the cluster was last heard of, whose
// it is, which parts of which kinds had been seen, and the objects: protobuf where the
// API speaks it, else JSON. Kinds are written by name, so that a version with others
// refuses the file instead of mistaking one for another.
//
// It keeps these promises: what does not read in full is refused in full; no length
// that the file claims is believed before the bytes are there.
//
// Read lastknown.go.
package lastknown
