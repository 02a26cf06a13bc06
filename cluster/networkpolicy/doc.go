// Package networkpolicy says what the NetworkPolicies of a cluster let through, as the
// documentation of networking.k8s.io/v1 has it. Who enforces them, and whether anybody does,
// no object tells.
//
// It is pure. A policy isolates the pods that it selects in the directions that it is about;
// what is isolated gets, or sends, only what a rule of one of these policies names. Policies of
// other kinds (AdminNetworkPolicy, those of Cilium and Calico) are not known here.
//
// Read networkpolicy.go first, then behind.go.
package networkpolicy
