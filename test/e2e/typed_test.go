package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quayside.io/test/lab"
)

// untyped are the commands of the pages that are not typed here, by how they begin, and
// why not.
func untyped() map[string]string {
	return map[string]string{
		"make image && crane push": "there is no registry of the reader's; TestBuild in test/image makes the image",
		"make ":                    "it builds this tree, runs the tests, or starts this lab",
	}
}

// typist types commands as a reader of the pages does, on a machine beside the cluster:
// in a copy of the source tree, as far as they name it, with Helm, kubectl and quayside.
type typist struct {
	edge
	laptop *lab.Client
	folder string
	env    []string
}

func newTypist(e edge) *typist {
	t := e.t
	t.Helper()
	p := &typist{edge: e, laptop: e.Client("laptop"), folder: t.TempDir()}
	bin := t.TempDir()
	e.Tools(bin)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(e.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Symlink(filepath.Join(root, "charts"), filepath.Join(p.folder, "charts")),
		os.WriteFile(filepath.Join(p.folder, "kubeconfig"), config, 0o600),
		os.Mkdir(filepath.Join(p.folder, "manifests"), 0o755),
		os.WriteFile(filepath.Join(p.folder, "manifests", "pool.yaml"), []byte(lanPool), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+p.folder, "KUBECONFIG="+filepath.Join(p.folder, "kubeconfig"))
	p.must("kubectl config set-context --current --namespace " + e.Namespace())
	return p
}

// run types a line, and returns what is printed and how it ended.
func (p *typist) run(line string) (string, error) {
	file, err := os.Create(filepath.Join(p.folder, "printed"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "bash", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.folder, p.env, file, file
	if err = p.laptop.Start(cmd); err == nil {
		err = cmd.Wait()
	}
	printed, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		p.t.Fatal(readErr)
	}
	return string(printed), err
}

// must types a line that is not of the pages.
func (p *typist) must(line string) {
	p.t.Helper()
	if printed, err := p.run(line); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, printed)
	}
}

// prepare brings the cluster to where a page has its reader who types that line.
func (p *typist) prepare(line string) {
	p.t.Helper()
	const (
		release   = "helm status quayside --namespace quayside-system >/dev/null 2>&1"
		remove    = "if " + release + "; then helm uninstall quayside --namespace quayside-system --wait; fi; kubectl wait --for=delete namespace/quayside-proxy --timeout=2m"
		namespace = "kubectl get namespace quayside-system || kubectl create namespace quayside-system"
		install   = "if ! " + release + "; then kubectl wait --for=delete namespace/quayside-proxy --timeout=2m && helm install quayside charts/quayside --namespace quayside-system --create-namespace; fi"
		upgrade   = "helm upgrade quayside charts/quayside --namespace quayside-system --reuse-values"
	)
	starts := func(begins ...string) bool {
		return slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(line, b) })
	}
	switch {
	case strings.Contains(line, "=ingress-nginx/ingress-nginx-controller"):
		p.must("kubectl get namespace ingress-nginx || kubectl create namespace ingress-nginx") // where the reader has it
		p.must(install)
	case starts("kubectl create namespace quayside-system"):
		p.must(remove)
		p.must("kubectl delete namespace quayside-system --ignore-not-found")
	case starts("helm install"):
		p.must(remove)
		p.must(namespace)
	case starts("helm rollback"):
		p.must(install)
		p.must(upgrade)
	case starts("helm ", "quayside status", "quayside trace", "kubectl -n quayside-system", "kubectl get speakerstatuses"):
		p.must(install)
	}
}

// typed is a line of the pages as it is typed, and how it may end.
func typed(line string) (as string, fine func(error) bool) {
	as = strings.NewReplacer("REGISTRY", "registry.example.com", "TAG", "v1", "NAME", "somebody", "go run .", "quayside").Replace(line)
	for _, what := range []string{"NAMESPACE:", "NAME:"} { // columns of kubectl's, in capitals
		if strings.Contains(line, what) {
			as = line
		}
	}
	fine = func(err error) bool { return err == nil }
	switch {
	case strings.HasPrefix(as, "quayside trace"): // nothing runs there, so the path is broken
		fine = func(err error) bool { return strings.Contains(fmt.Sprint(err), "exit status 1") }
	case strings.HasPrefix(as, "quayside up ") && !strings.Contains(as, "--once"), strings.HasPrefix(as, "quayside proxy"): // until it is stopped
		as = "timeout --foreground --preserve-status -s INT 5 " + as
	}
	return as, fine
}

// shellLines are the lines of the shell blocks of a page, without comments, those that go
// on joined.
func shellLines(text string) (lines []string) {
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	comment := regexp.MustCompile(`(^| +)#.*`)
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.ReplaceAll(b[1], "\\\n", " ")) {
			if line = strings.TrimSpace(comment.ReplaceAllString(strings.TrimRight(line, "\n"), "")); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// Whatever the pages tell to type is typed, in a cluster, with Helm and kubectl
// themselves; but for what has a reason. No pods run in it, since there is no kubelet:
// what comes of it all, other tests see.
func TestPagesAreTyped(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	p := newTypist(e)
	e.Apply(metalLBPools)
	e.Eventually(settle, func() error { return e.TryApply(metalLBPool) })
	e.Apply(ingressFor("shop", "ingressClassName: nginx", "", "shop.example.com", "shop"))
	t.Cleanup(func() {
		for _, line := range []string{
			"helm uninstall quayside --namespace quayside-system --ignore-not-found --wait",
			"kubectl delete namespace quayside-system ingress-nginx --ignore-not-found", "kubectl wait --for=delete namespace/quayside-proxy --timeout=2m",
		} {
			if printed, err := p.run(line); err != nil {
				t.Errorf("%s: %v\n%s", line, err, printed)
			}
		}
	})
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons, used, count := untyped(), map[string]bool{}, 0
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
	lines:
		for _, line := range shellLines(string(text)) {
			for _, begins := range slices.Backward(slices.Sorted(maps.Keys(reasons))) { // the longest first
				if strings.HasPrefix(line, begins) {
					used[begins] = true
					continue lines
				}
			}
			count++
			p.prepare(line)
			as, fine := typed(line)
			if printed, err := p.run(as); !fine(err) {
				t.Errorf("%s: %s: %v\n%s", path, as, err, printed)
			}
		}
	}
	for begins := range reasons {
		if !used[begins] {
			t.Errorf("no page tells to type %q", begins)
		}
	}
	if count < 40 {
		t.Errorf("%d commands: this test looks in the wrong place", count)
	}
	if printed, err := p.run("helm upgrade quayside charts/quayside --namespace quayside-system --set speed=9"); err == nil {
		t.Errorf("a value that there is not passes: this test proves nothing\n%s", printed)
	}
}
