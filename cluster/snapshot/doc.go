// Package snapshot holds Cluster: everything known about the cluster as one
// immutable value, and Problem: what is wrong with it, addressed to the person
// who can fix it.
//
// Any package may import it. It keeps two promises. A *Cluster never changes once
// it is built, so it crosses goroutines through an atomic pointer and a reader
// takes no lock. And a changed object costs O(log n), not a copy of the world:
// each kind lives in a persistent trie (Store) with a generation of its own,
// so that a compiler can tell whether anything it reads has changed.
//
// The objects inside are the raw Kubernetes objects and must not be modified:
// `kubectl get -o yaml` of a cluster is a test case.
//
// A new kind of object is three lines in kind.go: its constant, its store, and
// its row in the table (store, group and version, resource name, scope, list
// type). What watches (cluster), reads manifests (cluster/manifest) and names
// objects follows from the row; test/house adds one to prove it. Whoever reads the
// kind adds it to its Kinds, and the chart's roles permit it.
//
// Read cluster.go first, then kind.go.
package snapshot
