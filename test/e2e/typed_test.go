package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/tickets"
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
	folder   string
	env      []string
	released bool // the release is installed
	machines int  // beside the laptop, for what is typed on one of its own:
	apart    sync.WaitGroup
}

func newTypist(e edge) *typist {
	t := e.t
	t.Helper()
	p := &typist{edge: e, folder: t.TempDir()}
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

// run types a line at a machine, and returns what is printed and how it ended.
func (p *typist) run(at *lab.Client, line string) (string, error) {
	file, err := os.CreateTemp(p.folder, "printed")
	if err != nil {
		return "", err
	}
	defer file.Close()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "bash", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.folder, p.env, file, file
	begin := time.Now()
	if err = at.Start(cmd); err == nil {
		err = cmd.Wait()
	}
	p.t.Logf("%6dms %s", time.Since(begin).Milliseconds(), line)
	printed, readErr := os.ReadFile(file.Name())
	if readErr != nil {
		return "", readErr
	}
	return string(printed), err
}

// must types a line that is not of the pages.
func (p *typist) must(line string) {
	p.t.Helper()
	if printed, err := p.run(p.Client("laptop"), line); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, printed)
	}
}

// typed types a line of a page. What runs until it is stopped, and asks nobody, has a
// machine and ports of its own meanwhile.
func (p *typist) typed(page, line string) {
	p.t.Helper()
	line, fine := asTyped(line)
	on := func(at *lab.Client) {
		if printed, err := p.run(at, line); !fine(err) {
			p.t.Errorf("%s: %s: %v\n%s", page, line, err, printed)
		}
	}
	if !strings.HasPrefix(line, "timeout ") {
		on(p.Client("laptop"))
		return
	}
	p.machines++
	at := p.Client(fmt.Sprintf("laptop-%d", p.machines))
	p.apart.Go(func() { on(at) })
}

// prepare brings the cluster to where a page has its reader who types that line.
func (p *typist) prepare(line string) {
	p.t.Helper()
	const install = "helm install quayside charts/quayside --namespace quayside-system --create-namespace"
	needs := func(begins ...string) bool {
		return slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(line, b) })
	}
	installs := needs("helm install ")
	switch {
	case installs && p.released: // the page tells of another way, or begins anew
		p.must("helm uninstall quayside --namespace quayside-system --wait")
	case installs:
		p.must("kubectl wait --for=delete namespace/quayside-proxy --timeout=2m && { kubectl get namespace quayside-system || kubectl create namespace quayside-system; }")
	case p.released:
	case needs("helm upgrade ", "helm rollback ", "helm uninstall ", "kubectl -n quayside-system ", "kubectl get speakerstatuses"):
		p.must(install)
		p.released = true
	}
	if strings.Contains(line, "=ingress-nginx/ingress-nginx-controller") {
		p.must("kubectl get namespace ingress-nginx || kubectl create namespace ingress-nginx") // where the reader has it
	}
	if strings.Contains(line, "kubectl delete speakerstatuses") { // of a Node that is gone, and of one that is there
		p.must(fmt.Sprintf("kubectl create -f - <<<'{apiVersion: v1, kind: List, items: [%s, %s]}'", speakerStatusOf("gone"), speakerStatusOf(p.Node(1).Name())))
	}
	if strings.HasPrefix(line, patchCookies) { // no controller runs that would make it
		p.must("kubectl create secret generic " + tickets.Name + " --namespace quayside-system")
	}
	if needs(patchShop) { // with an address as ServiceLB gives it
		p.must("kubectl -n default create service loadbalancer shop --tcp=80")
		p.must(patchShop + ` --subresource=status --type=merge -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}'`)
	}
	if needs("helm rollback ") {
		p.must("helm upgrade quayside charts/quayside --namespace quayside-system --reuse-values")
	}
	p.released = (p.released || installs) && !needs("helm uninstall ")
}

// patchCookies begins the line that makes a new key of session cookies, patchShop that which
// takes away an address that another gave.
const (
	patchCookies = "kubectl patch secret " + tickets.Name
	patchShop    = "kubectl -n default patch service shop"
)

func speakerStatusOf(node string) string {
	return "{apiVersion: quayside.io/v1alpha1, kind: SpeakerStatus, metadata: {name: " + node + "}}"
}

// check asserts what comes of a line that the API server does not judge.
func (p *typist) check(line string) {
	p.t.Helper()
	if strings.HasPrefix(line, patchCookies) {
		secret, err := p.Kube().CoreV1().Secrets(lab.SystemNamespace).Get(p.t.Context(), tickets.Name, metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		if _, err := tickets.CookieKey(secret.Data); err != nil {
			p.t.Errorf("%s leaves no key: %v", line, err)
		}
	}
	if strings.HasPrefix(line, patchShop) {
		shop, err := p.Kube().CoreV1().Services("default").Get(p.t.Context(), "shop", metav1.GetOptions{})
		if err != nil || len(shop.Status.LoadBalancer.Ingress) > 0 {
			p.t.Errorf("%s leaves %v (%v)", line, shop.Status.LoadBalancer, err)
		}
		p.must("kubectl -n default delete service shop")
	}
	if strings.Contains(line, "kubectl delete speakerstatuses") {
		left, err := p.run(p.Client("laptop"), "kubectl get speakerstatuses.quayside.io --output name")
		if want := "speakerstatus.quayside.io/" + p.Node(1).Name() + "\n"; err != nil || left != want {
			p.t.Errorf("%s leaves %q (%v), want %q", line, left, err, want)
		}
	}
}

// asTyped is a line of the pages as it is typed, and how it may end.
func asTyped(line string) (as string, fine func(error) bool) {
	as = strings.NewReplacer("REGISTRY", "registry.example.com", "TAG", "v1", "--user NAME", "--user somebody", "go run .", "quayside").Replace(line)
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

// pagesToType are the pages with commands, in the order in which one cluster takes the
// least time: first those that need a release, then those that begin with none.
func pagesToType(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	last := []string{"../../docs/install.md", "../../docs/from-metallb.md"}
	pages = slices.DeleteFunc(pages, func(page string) bool { return slices.Contains(last, page) })
	return slices.Concat([]string{"../../README.md"}, pages, last)
}

// linesToType are the lines of a page that are typed.
func linesToType(t *testing.T, page string, reasons map[string]string, used map[string]bool) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range shellLines(string(text)) {
		left := ""
		for begins := range reasons {
			if strings.HasPrefix(line, begins) && len(begins) > len(left) {
				left = begins
			}
		}
		if left == "" {
			lines = append(lines, line)
		}
		used[left] = true
	}
	return lines
}

// Whatever the pages tell to type is typed, in a cluster, with Helm and kubectl
// themselves, once where several pages tell the same; but for what has a reason. No pods
// run in it, since there is no kubelet: what comes of it all, other tests see.
//
// It waits for nothing to be gone but where a page goes on from there: whoever installs next
// on its lane does.
func TestPagesAreTyped(t *testing.T) {
	beside(t)
	e := edge{share(t, "fresh"), t}
	p := newTypist(e)
	defer p.apart.Wait()
	p.must("kubectl delete namespace,customresourcedefinition --ignore-not-found quayside-system " + strings.Join(ourKinds(), " "))
	e.Apply(metalLBPools)
	e.Eventually(settle, func() error { return e.TryApply(metalLBPool) })
	e.Apply(ingressFor("shop", "ingressClassName: nginx", "", "shop.example.com", "shop"))
	reasons, used, done := untyped(), map[string]bool{}, map[string]bool{}
	for n, page := range pagesToType(t) {
		for _, line := range linesToType(t, page, reasons, used) {
			if !done[line] || strings.HasPrefix(line, "helm ") { // whose order matters
				p.prepare(line)
				p.typed(page, line)
				p.check(line)
			}
			done[line] = true
		}
		if n == 0 { // and the release is there
			p.refused("helm install second charts/quayside --namespace quayside-system --set fullnameOverride=second --set ingressClass.name=second --set speaker.enabled=false",
				"release quayside of Quayside is in namespace quayside-system")
		}
	}
	for begins := range reasons {
		if !used[begins] {
			t.Errorf("no page tells to type %q", begins)
		}
	}
	if len(done) < 40 {
		t.Errorf("%d commands: this test looks in the wrong place", len(done))
	}
	p.refused("helm upgrade quayside charts/quayside --namespace quayside-system --install --set speed=9", "speed")
}

// refused types a line that is to fail, and to say why.
func (p *typist) refused(line, why string) {
	p.t.Helper()
	if printed, err := p.run(p.Client("laptop"), line); err == nil || !strings.Contains(printed, why) {
		p.t.Errorf("%s: %v, want a refusal with %q:\n%s", line, err, why, printed)
	}
}
