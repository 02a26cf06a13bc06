// Package demo is what `quayside up --demo` adds to an empty machine: manifests of a small
// cluster, pods that are HTTP servers on loopback and are replaced all the time, and a client
// that counts failed requests.
//
// Only package command imports it. It needs no root and no network but loopback, and changes the
// cluster through two methods, so that what it shows is what the components do with any other
// manifest.
//
// Read demo.go first; manifests/ is what it brings.
package demo
