// Package announce decides, for one node, which load balancer addresses it
// answers for on its LAN, which it should claim next, what it tells routers over
// BGP, and what is wrong with the rest.
//
// It is pure: Compile turns a cluster snapshot and a View (who is alive, who
// claims what, which interfaces every node has, what the LAN said) into a Plan.
// First it finds the addresses that may be announced at all (services.go); layer 2
// gives each one owner, and BGP makes routes of those that this node may serve.
// Package speaker acts on the plan; the controller's leader compiles it only for
// its Problems. The words Claim, Facts and Interface are shared with the drivers
// l2 and members.
//
// It keeps these promises, each with a property test:
//   - speakers with equal views agree: every address that has an eligible live
//     node is owned by exactly one, and no address is announced that lies
//     outside every pool or belongs to a node or a gateway;
//   - nothing moves without a cause: a claim stays with its node while that
//     node is alive and eligible, whoever else comes or returns;
//   - speakers that see different clusters, since their watches lag, come to rest
//     with one owner, and once they see the same with one that may own;
//   - load is bounded: no node is chosen beyond 5/4 of its fair share while an
//     equally preferred one is below it;
//   - routes cover nothing but addresses of pools, and need no gossip;
//   - the cost is linear in services plus, for unowned addresses only, nodes.
//
// Read announce.go first, then decide.go, eligible.go and place.go; for BGP bgp.go,
// peers.go and routes.go.
package announce
