package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// executed says of commands of the pages, by how they begin, which tests do what they
// do, as "folder TestName". Where none can, because it says why.
type executed struct {
	begins  string
	tests   []string
	because string
}

const released = "test/e2e TestReleaseComesAndGoes"

func executedCommands() []executed {
	const ofTheReader = "needs a registry of the reader's"
	return []executed{
		{begins: "make image && crane push", tests: []string{"test/image TestBuild"}, because: ofTheReader},
		{begins: "make ", because: "the tests themselves are run by it"},
		{begins: "helm install quayside charts/quayside ", tests: []string{released, "test/chart TestPagesSetValuesThatExist"}},
		{begins: "helm upgrade quayside charts/quayside ", tests: []string{released, "test/chart TestPagesSetValuesThatExist", "test/chart TestReusedValues"}},
		{begins: "helm rollback quayside ", tests: []string{released}},
		{begins: "helm uninstall quayside ", tests: []string{released}},
		{begins: "kubectl create namespace quayside-system", tests: []string{released}},
		{begins: "kubectl -n quayside-system create rolebinding viewer ", tests: []string{"test/chart TestViewer"}},
		{begins: "kubectl label namespace quayside-system pod-security", because: "the lab runs Quayside without a kubelet"},
		{begins: "kubectl apply --server-side -f charts/quayside/crds", tests: []string{"test/e2e TestChartIsAccepted"}},
		{begins: "kubectl apply -f quayside.yaml", tests: []string{"test/e2e TestMigrateFromTheCluster"}},
		{begins: "kubectl delete --filename charts/quayside/crds", because: "Kubernetes deletes what is named"},
		{begins: "kubectl delete namespace quayside-system", because: "Kubernetes deletes what is named"},
		{begins: "kubectl -n metallb-system delete ", because: "MetalLB is not in the lab, only what it does on the wire"},
		{begins: "kubectl get ingress --all-namespaces --output custom-columns=", because: "it only reads, and Kubernetes answers"},
		{begins: "kubectl annotate ingress --all --all-namespaces ingress.quayside.io/problems-", because: "Kubernetes takes away what is named"},
		{begins: "kubectl get speakerstatuses.quayside.io", because: "it only reads, and Kubernetes answers"},
		{begins: "kubectl patch ingress shop ", tests: []string{"test/e2e TestMovingInPieceByPiece"}},
		{begins: "kubectl get configmaps,services ", tests: []string{"command/migrate TestStreams"}},
		{begins: "quayside status", tests: []string{"test/e2e TestStatusOfTheCluster"}},
		{begins: "quayside trace ", tests: []string{"test/e2e TestTraceInTheCluster"}},
		{begins: "quayside migrate --only ", tests: []string{"test/e2e TestMigrateFromTheCluster"}},
		{begins: "quayside proxy --trusted-proxies ", tests: []string{"command TestPagesShowCommandsThatExist"}, because: "its flags are only read there"},
		{begins: "quayside up -f manifests/", tests: []string{"command TestPagesShowObjectsThatWork"}},
		{begins: "go run . up -f manifests/", tests: []string{"command TestPagesShowObjectsThatWork", "command TestUpAnnounces"}},
		{begins: "go run . up --demo", tests: []string{"command TestDemoLosesNoRequestAndItsCurlLinesWork"}},
	}
}

// Whatever the pages tell to type is done by a test that there is, or has a reason why
// not; and no row is about what no page says any more.
func TestPagesShowCommandsThatAreExecuted(t *testing.T) {
	rows := executedCommands()
	used := map[string]bool{}
	for _, p := range pages(t) {
		for _, line := range p.commands {
			row := executedBy(rows, line)
			if row == nil {
				t.Errorf("%s: no row says which test executes: %s", p.path, line)
				continue
			}
			used[row.begins] = true
		}
	}
	for _, row := range rows {
		if !used[row.begins] {
			t.Errorf("no page tells to type %q", row.begins)
		}
		if len(row.tests) == 0 && row.because == "" {
			t.Errorf("%q: neither a test nor a reason", row.begins)
		}
		for _, test := range row.tests {
			if folder, name, _ := strings.Cut(test, " "); !hasTest(t, folder, name) {
				t.Errorf("%q: there is no test %s", row.begins, test)
			}
		}
	}
	if executedBy(rows, "kubectl drain n1") != nil || hasTest(t, "command", "TestOfNothing") {
		t.Error("anything passes: this test proves nothing")
	}
}

// executedBy is the first row about a command.
func executedBy(rows []executed, line string) *executed {
	for i, row := range rows {
		if strings.HasPrefix(line, row.begins) {
			return &rows[i]
		}
	}
	return nil
}

// hasTest reports whether the tests of a folder of the repository have one of that name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(t \*testing\.T\)`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if function.Match(text) {
			return true
		}
	}
	return false
}
