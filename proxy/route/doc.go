// Package route turns Ingress objects into a Table that says which Service
// answers a request, and with which certificate.
//
// Compile makes the next Table from a snapshot and the Table before it; only
// what changed is compiled again, and untouched routes keep their identity.
// Match and Certificate answer from a Table; Normalize prepares a request's path
// for Match. None of the three allocates.
//
// The package is pure. It keeps these promises. A Table is immutable. Whatever
// the objects say, Compile returns a usable Table, and every fault in them is a
// Problem on the object that has it. A route whose guard (authentication, allow
// list, client certificates) is not understood is closed, never open. And a
// Table depends on the snapshot and the Options alone: compiling step by step
// through a history ends where compiling from scratch does, save for the numbers
// of the backends.
//
// A request goes to the rule with the most specific host (exact, then wildcard,
// then none) among those with a matching path; within a host Exact comes before
// the longest Prefix. So a rule without host also answers for a host that has
// rules of its own, as the Ingress specification says. A host named by a class of
// ingress-nginx does not fall through, as there. Only when no rule matches are
// default backends asked, in the same order. ImplementationSpecific means Prefix.
//
// The ConfigMap of proxy-wide options (global.go) has the defaults of Ingresses;
// ownership.go decides which namespace a host belongs to.
//
// Read table.go first, then compile.go.
package route
