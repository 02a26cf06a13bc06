// Package announce decides, for one node, which load balancer addresses it answers for on
// its LAN, which it should claim next, which routes it announces over BGP, and which
// problems there are.
//
// It is pure: Compile turns a cluster snapshot and a View (live nodes, claims, the
// interfaces of every node, answers on the LAN) into a Plan. First it finds the addresses
// that may be announced at all (services.go); layer 2 gives each one owner, and BGP makes
// routes of those that this node may serve. Package speaker carries out the plan; the
// controller's leader compiles it only for its Problems. The drivers l2 and members use
// its types Claim, Facts and Interface.
//
// It keeps these promises, each with a property test:
//   - speakers with equal views agree: every address that has an eligible live node is
//     owned by exactly one, and no address is announced that lies outside every pool or
//     belongs to a node or a gateway;
//   - nothing moves without a cause: a claim stays with its node while that is alive and
//     eligible, even if other nodes join or return;
//   - speakers whose watches lag, and so see different clusters, settle on one owner, and,
//     once they see the same, on an eligible one; without an API server, which leaves them
//     with what each heard last, none waits for another for ever;
//   - load is bounded: no node is chosen beyond 5/4 of its fair share while an equally
//     preferred one is below it;
//   - routes cover nothing but addresses of pools, and need no gossip;
//   - the cost is linear in services plus, for unowned addresses only, nodes.
//
// Read announce.go first, then decide.go, eligible.go and place.go; for BGP bgp.go,
// peers.go and routes.go.
package announce
