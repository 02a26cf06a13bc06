// Package v1alpha1 is the API group quayside.io/v1alpha1: the objects an
// operator writes (pools, advertisements, peers) and the one a speaker writes
// (SpeakerStatus). Fields and meaning follow MetalLB's, so that moving is a
// change of apiVersion.
//
// Any package may import it; it imports only apimachinery. Deepcopy code and the
// CRDs in charts/quayside/crds are generated from it by `make generate`.
//
// Read pool.go first.
//
// +kubebuilder:object:generate=true
// +groupName=quayside.io
package v1alpha1
