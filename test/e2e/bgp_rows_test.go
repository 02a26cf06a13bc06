package e2e

import (
	"slices"
	"testing"
)

// bgpRows are the rows of MetalLB's e2etest/bgptests. Some rows that it has one
// per family are one here: TestBGPAdvertisements compares both each time.
func bgpRows() []suiteRow {
	return slices.Concat(bgpServiceRows(), bgpSessionRows(), bgpSelectorRows())
}

func bgpServiceRows() []suiteRow {
	const (
		adverts = "test/e2e TestBGPAdvertisements"
		kinds   = "test/e2e TestBGPPeersAndNodesOfManyKinds"
	)
	return []suiteRow{
		{file: "bgp.go", title: "ExternalTrafficPolicy Cluster: v4, v6, dual, annotation IPs",
			tests: []string{"test/e2e TestBGPRouterLearnsServices", adverts, "speaker/announce/testdata/bgp-cluster-policy.txt"}},
		{file: "bgp.go", title: "ExternalTrafficPolicy Local",
			tests: []string{"test/e2e TestBGPRouterLearnsServices", "test/e2e TestBGPLocalWithdrawsAtOnce", "test/e2e TestBGPAsksKubeProxyOfAService", "speaker/announce/testdata/bgp-local-policy.txt"}},
		{file: "bgp.go", title: "GracefulRestart: the data plane keeps working with it, has a downtime without",
			tests: []string{"test/e2e TestBGPGracefulRestart", "speaker/bgp TestFRRKeepsRoutesOverARestart", "speaker/bgp TestBIRDKeepsRoutesOverARestart"}},
		{file: "bgp.go", title: "not announced from a node with NetworkUnavailable",
			tests: []string{kinds, "speaker/announce/testdata/bgp-barred.txt"}},
		{file: "bgp.go", title: "service with overlapping (shared) IPs",
			tests: []string{kinds, "speaker/announce/testdata/bgp-shared.txt"}},
		{file: "bgp.go", title: "pool by range and by prefix",
			tests: []string{"controller/assign/testdata/pool_by_range_and_prefix.yaml", adverts}},
		{file: "bgp.go", title: "propagation: community", tests: []string{adverts + ": bgp.go: community"}},
		{file: "bgp.go", title: "propagation: large community", tests: []string{adverts + ": bgp.go: large community"}},
		{file: "bgp.go", title: "propagation: localPref", tests: []string{adverts + ": bgp.go: localPref"}},
		{file: "bgp.go", title: "propagation: alias of a CRD", tests: []string{adverts + ": bgp.go: an alias of a Community"}},
		{file: "bgp.go", title: "propagation: pool selector", tests: []string{adverts + ": bgp.go: the pool is selected by its labels"}},
		{file: "bgp.go", title: "overlapping advertisements union communities",
			tests: []string{adverts + ": bgp.go: overlapping advertisements unite communities", "speaker/announce/testdata/bgp-communities.txt"}},
		{file: "bgp.go", title: "updates of communities, localPref, aggregation length",
			tests: []string{adverts + ": bgp.go: updates of communities", adverts + ": bgp.go: updates of localPref, and prepending", adverts + ": updates in place"}},
		{file: "bgp.go", title: "ServiceBGPStatus",
			tests:   []string{"test/e2e TestBGPRouterLearnsServices", "speaker TestSessionsAreNoEdge"},
			differs: "count and hash of the routes per session in the SpeakerStatus of the node: a list per node and Service would be too many writes"},
		{file: "bgp.go", title: "two protocols at once",
			tests: []string{"test/e2e TestBGPBesideLayer2", "speaker/announce/testdata/bgp-beside-layer2.txt"}},
		{file: "bgp_multiprotocol.go", title: "both families via v4", tests: []string{adverts}},
		{file: "bgp_multiprotocol.go", title: "both families via v6, and via a link-local address",
			tests: []string{"speaker/bgp TestFRROverIPv6", "speaker/bgp TestFRRUnnumbered", "test/e2e TestBGPUnnumbered"}},
		{file: "bgp_multiprotocol.go", title: "localPref and communities on both",
			tests: []string{adverts + ": bgp.go: localPref", adverts + ": bgp.go: community"}},
	}
}

func bgpSessionRows() []suiteRow {
	const kinds = "speaker/bgp TestFRRTakesEveryKindOfSession"
	return []suiteRow{
		{file: "bgp.go", title: "peers with routerID", tests: []string{"speaker/bgp TestBIRDReflectsOurRoutes", "speaker/announce/testdata/bgp-peers.txt"}},
		{file: "bgp.go", title: "GracefulRestart peers", tests: []string{kinds + ": graceful restart", "test/e2e TestBGPGracefulRestart"}},
		{file: "bgp.go", title: "peers with localASN", tests: []string{"test/e2e TestBGPPeersAndNodesOfManyKinds", "speaker TestSessionsInTheDriversWords", "speaker/announce/testdata/bgp-peers.txt"}},
		{file: "bgp.go", title: "secret ref for the password",
			tests: []string{"test/e2e TestBGPRouterLearnsServices", "test/e2e TestBGPPasswordRotation", "speaker TestPasswordsComeFromTheNamespaceOfQuayside"}},
		{file: "bgp.go", title: "BFD profile default, full, echo, and no flap",
			tests:   []string{"test/e2e TestBGPWithBFD", "speaker/bfd TestFRR", "speaker/bfd TestBIRD", "speaker/announce/testdata/bgp-peers.txt"},
			differs: "echo packets are not sent, which is told on the BFDProfile"},
		{file: "bgp.go", title: "subsequent configuration updates; peers one by one", tests: []string{"test/e2e TestBGPAdvertisements: updates in place"}},
		{file: "bgp.go", title: "rejects any route advertised by a neighbour", tests: []string{"test/e2e TestBGPRouterLearnsServices", "speaker/bgp TestFlood"}},
		{file: "bgp.go", title: "connect time after a reset", tests: []string{"speaker/bgp TestFRRComesBack"},
			differs: "the pauses grow from 100 ms to connectTime, so that a session is back as soon as the router is"},
		{file: "bgp.go", title: "timers", tests: []string{kinds + ": hold 3 s", kinds + ": no hold timer", "speaker/announce/testdata/bgp-peers.txt"}},
		{file: "bgp.go", title: "dynamic ASN, right and wrong mode",
			tests: []string{kinds + ": any external AS", kinds + ": any internal AS", kinds + ": external, not internal", kinds + ": internal, not external"}},
		{file: "metrics.go", title: "BGP, BFD", tests: []string{"test/e2e TestBGPRouterLearnsServices", "test/e2e TestBGPWithBFD"}, differs: "our names"},
	}
}

func bgpSelectorRows() []suiteRow {
	const adverts = "test/e2e TestBGPAdvertisements: "
	return []suiteRow{
		{file: "bgppeer_selector.go", title: "service outside the peers list is not advertised", tests: []string{adverts + "bgppeer_selector.go: a peer that is not listed learns nothing"}},
		{file: "bgppeer_selector.go", title: "two advertisements to two peers", tests: []string{adverts + "bgppeer_selector.go: two advertisements to two peers"}},
		{file: "node_selector.go", title: "two distinct advertisements", tests: []string{adverts + "node_selector.go: two distinct advertisements"}},
		{file: "node_selector.go", title: "single service, two advertisements", tests: []string{adverts + "node_selector.go: a single Service, two advertisements"}},
		{file: "node_selector.go", title: "labelling a node", tests: []string{adverts + "updates in place"}},
		{file: "node_selector.go", title: "updating one selector", tests: []string{adverts + "node_selector.go: one of its selectors is updated", adverts + "updates in place"}},
		{file: "node_selector.go", title: "limited nodes", tests: []string{adverts + "node_selector.go: limited nodes"}},
		{file: "node_selector.go", title: "different MyASN per node", tests: []string{"test/e2e TestBGPPeersAndNodesOfManyKinds", "speaker/announce/testdata/bgp-disjoint-peers.txt"}},
		{file: "service_selector.go", title: "pool and service selectors",
			tests: []string{adverts + "service_selector.go: pool and Service selectors", "speaker/announce/testdata/bgp-service-selectors.txt"}},
		{file: "service_selector.go", title: "multiple selectors", tests: []string{adverts + "service_selector.go: several selectors"}},
		{file: "service_selector.go", title: "selector update", tests: []string{adverts + "updates in place"}},
		{file: "service_selector.go", title: "service label update", tests: []string{adverts + "updates in place"}},
		{file: "service_selector.go", title: "split aggregation length", tests: []string{"test/chart/testdata/refused/bgpadvertisement.yaml"},
			differs: "refused by the API server: an aggregate also covers Services that were not selected"},
		{file: "service_selector.go", title: "overlapping communities", tests: []string{adverts + "service_selector.go: overlapping communities"}},
		{file: "service_selector.go", title: "non-overlapping communities", tests: []string{adverts + "service_selector.go: separate communities"}},
	}
}

func TestBGPRowsAreTested(t *testing.T) { checkRows(t, bgpRows()) }
