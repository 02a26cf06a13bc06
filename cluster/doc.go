// Package cluster is the only access to Kubernetes. It turns an API server (API) or a set of
// manifest files (Files) into a *snapshot.Cluster that is always available, and writes
// Quayside's statuses and Events back.
//
// Components and command import it; no other package imports client-go. A Source publishes the
// snapshot through an atomic pointer and signals changes; a Writer writes statuses and Events.
// API and Files are both.
//
// It keeps these promises. One loop owns the state (ledger.go): an object never goes back to an
// older resourceVersion, a write is in the snapshot when it returns, and a deleted object is not
// resurrected by a late response. Nothing is dropped because a watch broke; deletions missed
// meanwhile are found by the next list. A kind that the server does not have is a Fault, not a
// reason to wait forever. A file that does not parse is a Fault, and its last good version stays
// in force.
//
// Read source.go and ledger.go first, then api.go or files.go.
package cluster
