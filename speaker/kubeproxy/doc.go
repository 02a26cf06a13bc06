// Package kubeproxy finds out whether the kube-proxy of this node has written its rules since it
// started. Until then a node that has just booted would take an address and drop or refuse its
// packets.
//
// Only package speaker imports it, which runs one Watcher and reads Behind, which changes once:
// from a reason to wait to "".
//
// It reads kube-proxy's metrics for the time of the last sync of every family that kube-proxy
// serves. Its health endpoints do not have it: both answer 200, with an update time, before the
// first rule is written. Waiting is bounded, and ends at once if the answer cannot be parsed;
// without a kube-proxy (another program may do its work) it ends when there has been no answer for
// a while. A kube-proxy that has caught up is not asked again.
//
// A Health asks about single Services, at their healthCheckNodePort, while they have endpoints on
// this node. Only a definite "no local endpoints" counts.
package kubeproxy
