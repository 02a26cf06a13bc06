// Package speaker announces the addresses that live on this node. It joins five
// packages: cluster says what exists, members who is alive and who
// claims what, l2 what the LAN looks like, kubeproxy whether this node has its
// rules; announce turns all of it into a plan, which l2 and members carry out.
//
// Only main imports it.
//
// It keeps these promises:
//   - nothing is claimed before the cluster is synced and the members have met;
//   - an address of a node that gossip calls dead moves only when the LAN,
//     asked three times, stays silent about it; a first claim is made only when
//     no stranger answers; and a node whose link was down answers again only
//     when nobody else does by now;
//   - an orderly end and a drain are announced, and then hand over: others answer
//     before this node stops;
//   - a node whose kube-proxy has not written its rules takes nothing new that
//     another can;
//   - when the API server or a watch breaks, everything stays as it is.
//
// Read speaker.go first, then loop.go, takeover.go and farewell.go.
package speaker
