// Package cluster is the only door to Kubernetes. It turns an API server (API)
// or a set of manifest files (Files) into a *snapshot.Cluster that is always
// there, and carries Quayside's few writes back.
//
// Components and command import it; nothing else imports client-go. A Source
// publishes the snapshot through an atomic pointer and says when it changed; a
// Writer writes statuses and Events. API and Files are both at once.
//
// It keeps these promises. One loop owns what is known (ledger.go): an object
// never goes back to an older resourceVersion, what was written is in the
// snapshot when the write returns, and a deleted object is not resurrected by a
// late answer. Nothing is dropped because a watch broke; deletions missed
// meanwhile are found by the next list. A kind that the server does not know is
// a Fault, not a reason to wait forever. A file that does not parse is a Fault
// and its last good version stays in force.
//
// Read source.go and ledger.go first, then api.go or files.go.
package cluster
