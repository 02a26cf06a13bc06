package lab

// volume is one entry of a pod's volumes, kept up to date by its kubelet.
type volume struct{}

// probe is a readinessProbe.
type probe struct{}
