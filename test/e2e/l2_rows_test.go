package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suiteRow is one thing that MetalLB's own end-to-end tests (e2etest/l2tests and
// bgptests) assert, and where it is asserted here. Its tests of assignment are
// scenarios of controller/assign.
type suiteRow struct {
	file, title string
	// tests are "folder TestName", with the name of a subtest after a colon, or
	// a scenario file.
	tests   []string
	differs string // what we do otherwise, and why
}

// sticky is why rows end otherwise than in MetalLB, where the election has no
// memory.
const sticky = "a node that may hold the address again takes nothing back by itself: moving an address cuts its connections"

func l2Rows() []suiteRow {
	return slices.Concat(serviceRows(), selectorRows(), preferenceRows())
}

func serviceRows() []suiteRow {
	return []suiteRow{
		{file: "l2.go", title: "should work for ExternalTrafficPolicy=Cluster",
			tests: []string{"test/e2e TestClusterPolicy", "test/e2e TestL2OneAnswerer"}},
		{file: "l2.go", title: "process the status as L2ServiceStatus along with service",
			tests:   []string{"test/e2e TestSpeakersSayWhatTheyDo", "test/e2e TestL2StatusFollowsTheService"},
			differs: "the status is the list in the SpeakerStatus of the node, one object per node instead of one per Service"},
		{file: "l2.go", title: "ExternalTrafficPolicy=Local",
			tests: []string{"test/e2e TestLocalPolicy", "test/e2e TestL2NodeSelectorsAndLocalPolicy", "speaker/announce/testdata/local-policy.txt"}},
		{file: "l2.go", title: "mixed protocol services",
			tests: []string{"test/e2e TestL2MixedProtocols", "controller/assign/testdata/sharing_mixed_protocols.yaml"}},
		{file: "l2.go", title: "not announced from a node with NetworkUnavailable",
			tests: []string{"test/e2e TestL2BarredNode: l2.go: NetworkUnavailable"}, differs: sticky},
		{file: "l2.go", title: "NodeExcludeBalancers label",
			tests: []string{"test/e2e TestL2BarredNode: l2.go: the label that excludes from load balancers"}, differs: sticky},
		{file: "l2.go", title: "address pool by range, by prefix",
			tests: []string{"controller/assign/testdata/pool_by_range_and_prefix.yaml"}},
		{file: "l2.go", title: "different services sharing the same IP advertise from the same node",
			tests: []string{"test/e2e TestL2SharedAddresses", "speaker/announce/testdata/shared.txt"}},
		{file: "l2.go", title: "metrics exposed",
			tests: []string{"test/e2e TestL2Metrics"}, differs: "our names; the counters of frames are by interface and family, not by address"},
		{file: "l2.go", title: "request a specific pool",
			tests: []string{"controller/assign/testdata/requested_pool.yaml"}},
		{file: "speaker_failover.go", title: "move L2 advertisement when the announcing node stops running a ready speaker",
			tests: []string{"test/e2e TestSpeakerStopsWithoutALostConnection", "test/e2e TestL2PreferredNodes: fail over, and come back when told to"}, differs: sticky},
		{file: "loadbalancer_class.go", title: "service with a class gets no IP",
			tests: []string{"controller/assign/testdata/loadbalancer_class_of_others.yaml", "test/e2e TestL2Class"}},
	}
}

func selectorRows() []suiteRow {
	return []suiteRow{
		{file: "interface_selector.go", title: "L2ServiceStatus interface",
			tests: []string{"test/e2e TestL2Advertisements: interface_selector.go: the load balancer's MAC is that of the interface"}},
		{file: "interface_selector.go", title: "LB IP's MAC",
			tests: []string{"test/e2e TestL2Advertisements: interface_selector.go: the load balancer's MAC is that of the interface",
				"test/e2e TestL2EachInterfaceForItsSubnet", "speaker/l2 TestEachInterfaceAnswersForItself"}},
		{file: "interface_selector.go", title: "modify interface",
			tests: []string{"test/e2e TestL2Advertisements: interface_selector.go: the interface is changed"}},
		{file: "interface_selector.go", title: "non-existing interface",
			tests: []string{"test/e2e TestL2Advertisements: interface_selector.go: an interface that no node has"}},
		{file: "interface_selector.go", title: "two L2 advertisements",
			tests: []string{"test/e2e TestL2Advertisements: interface_selector.go: two advertisements, both interfaces",
				"test/e2e TestL2Advertisements: interface_selector.go: two advertisements, each for a node of its own"}},
		{file: "interface_selector.go", title: "node selector",
			tests: []string{"test/e2e TestL2Advertisements: interface_selector.go: with a node selector"}},
		{file: "node_selector.go", title: "one node",
			tests: []string{"test/e2e TestL2Advertisements: node_selector.go: one node"}},
		{file: "node_selector.go", title: "multiple selectors",
			tests: []string{"test/e2e TestL2Advertisements: node_selector.go: several selectors add up", "test/e2e TestL2NodeSelectorsAndLocalPolicy"}},
		{file: "node_selector.go", title: "adding nodes",
			tests: []string{"test/e2e TestL2NodeSelectorChanges"}, differs: sticky},
		{file: "service_selector.go", title: "pool and service selectors",
			tests: []string{"test/e2e TestL2Advertisements: service_selector.go: pool and Service selectors"}},
		{file: "service_selector.go", title: "exactly one node",
			tests: []string{"test/e2e TestL2Advertisements: service_selector.go: exactly one node"}},
		{file: "service_selector.go", title: "none matches",
			tests: []string{"test/e2e TestL2Advertisements: service_selector.go: none matches"}},
		{file: "service_selector.go", title: "OR logic",
			tests: []string{"test/e2e TestL2Advertisements: service_selector.go: one of several matches"}},
	}
}

func preferenceRows() []suiteRow {
	return []suiteRow{
		{file: "preferred_node.go", title: "prefer and fall back",
			tests: []string{"test/e2e TestL2PreferredNodes: prefer, and fall back", "speaker/announce/testdata/preferred.txt", "speaker/announce/testdata/preferred-away.txt"}},
		{file: "preferred_node.go", title: "no match is the baseline",
			tests: []string{"test/e2e TestL2PreferredNodes: no match is no preference", "speaker/announce/testdata/preferred-matches-none.txt"}},
		{file: "preferred_node.go", title: "fail over and reclaim",
			tests: []string{"test/e2e TestL2PreferredNodes: fail over, and come back when told to", "speaker/announce/testdata/preferred-returns.txt"}, differs: sticky},
		{file: "preferred_node.go", title: "spec change re-elects",
			tests: []string{"test/e2e TestL2PreferredNodes: edited preferences elect again", "speaker/announce/testdata/preferred-changed.txt",
				"speaker/announce/testdata/preferred-changed-away.txt"}},
		{file: "preferred_node.go", title: "hard filter and soft order",
			tests: []string{"test/e2e TestL2PreferredNodes: a hard filter and a soft order", "speaker/announce/testdata/preferred-within-selected.txt"}},
		{file: "preferred_node.go", title: "disjoint",
			tests: []string{"test/e2e TestL2PreferredNodes: disjoint preferences", "speaker/announce/testdata/preferred-disjoint.txt"}},
		{file: "preferred_node.go", title: "weights sum",
			tests: []string{"test/e2e TestL2PreferredNodes: weights add up", "speaker/announce/testdata/preferred-weights.txt"}},
		{file: "preferred_node.go", title: "scoped by serviceSelectors",
			tests: []string{"test/e2e TestL2PreferredNodes: scoped by serviceSelectors"}},
	}
}

func TestL2RowsAreTested(t *testing.T) { checkRows(t, l2Rows()) }

// checkRows sees to it that every row names a test that exists, so that a reader
// finds it.
func checkRows(t *testing.T, rows []suiteRow) {
	t.Helper()
	source := map[string]string{}
	read := func(dir string) string {
		if _, ok := source[dir]; !ok {
			files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if strings.HasSuffix(file, "_rows_test.go") {
					continue
				}
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				source[dir] += string(text)
			}
		}
		return source[dir]
	}
	for _, r := range rows {
		if len(r.tests) == 0 {
			t.Errorf("%s, %s: no test", r.file, r.title)
		}
		for _, test := range r.tests {
			name, subtest, _ := strings.Cut(test, ": ")
			dir, function, isTest := strings.Cut(name, " ")
			if !isTest {
				if _, err := os.Stat(filepath.Join("../..", test)); err != nil {
					t.Errorf("%s, %s: %v", r.file, r.title, err)
				}
				continue
			}
			text := read(dir)
			if !strings.Contains(text, "func "+function+"(t *testing.T)") || !strings.Contains(text, `"`+subtest) {
				t.Errorf("%s, %s: no %s in %s", r.file, r.title, test, dir)
			}
		}
	}
}
