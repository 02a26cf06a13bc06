// Package kubeproxy finds out whether the kube-proxy of this node has written
// its rules since it started. Until then a node that has just booted would take
// an address and drop or refuse what is sent there.
//
// Only package speaker imports it, which runs one Watcher and reads Behind, which
// changes once: from a reason to wait to none.
//
// It asks kube-proxy's metrics for the time of the last sync of every family
// that kube-proxy serves. Its health endpoints do not say: both answer 200, and
// name a time of update, before the first rule is written. Waiting is bounded,
// and ends at once where the answer cannot be understood; without a kube-proxy
// (another program may do its work) it ends when nobody has answered for a
// while. Whoever has caught up is not asked again.
//
// A Health asks about single Services, at their healthCheckNodePort, for as long as
// they have endpoints here. Only a clear no counts there.
package kubeproxy
