// Package scenario plays golden files: a behaviour is a file that a person can
// read, with a cluster as `kubectl get -o yaml` shows it and what comes of it.
//
// A file is YAML documents (objects, and settings in documents without a
// kind), a line "---- expect", and the outcome as the package describes it; then,
// any number of times, a line "---- then" with what changes next, and again
// what comes of that. The setting delete lists objects that go
// ("Service ns/name"), after is how much time passes before the step.
//
// `go test ./<package> -update` writes the outcomes; read the difference.
//
// Tests of any package may use it. Read scenario.go; it is short.
package scenario
