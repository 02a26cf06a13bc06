package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// A terminalLess is a stdout that is no terminal and may be read while it is
// written.
type terminalLess struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *terminalLess) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *terminalLess) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func TestExitCodes(t *testing.T) {
	good := writeFile(t, t.TempDir(), "good.yaml", poolYAML)
	bad := writeFile(t, t.TempDir(), "bad.yaml", strings.Replace(poolYAML, "addresses", "adresses", 1))
	classless := writeFile(t, t.TempDir(), "classless.yaml", classlessYAML)
	hostile := writeFile(t, t.TempDir(), "hostile.yaml",
		`{apiVersion: metallb.io/v1beta1, kind: AddressPool, metadata: {name: "\e[2J"}, spec: {protocol: pigeon}}`)
	unnamed := writeFile(t, t.TempDir(), "unnamed.yaml", unnamedYAML)
	for _, c := range []struct {
		args string
		code int
		says string // on either output
	}{
		{"version", exitDone, "quayside dev"},
		{"up --once -f " + unnamed, exitUsage, "BFDProfileNotFound"},
		{"up --once -f " + unnamed, exitUsage, `spec.ipAddressPools names "lam", which does not exist`},
		{"up --once -f " + unnamed, exitUsage, `spec.peers names "rot", which does not exist`},
		{"up --once -f " + unnamed, exitUsage, "PROBLEMS (4)"}, // and no more: which nodes there are the file does not say
		{"--help", exitDone, "up"},
		{"up --help", exitDone, "--demo"},
		{"sail", exitUsage, "sail"},
		{"up --speed=9", exitUsage, "--speed"},
		{"up", exitUsage, "--demo"},
		{"up --demo --log-level=loud", exitUsage, "loud"},
		{"up -f /does/not/exist.yaml --once", exitUsage, "/does/not/exist.yaml"},
		{"up --once -f " + good, exitDone, "10.9.0.0/24"},
		{"up --once -f " + bad, exitUsage, "adresses"},
		{"up --once -f " + hostile + " -f " + bad, exitUsage, "PROBLEMS (2)"},
		{"up --once -f " + hostile + " -f " + bad, exitUsage, "bad input: 1 of these problems must be solved\n"},
		{"up --once -f migrate/testdata/ingress.in.yaml", exitUsage, "traefik   default -> plain:http          none, not served here: class traefik is none of ours\n"},
		{"up --demo --watch-namespace-selector=edge=public,", exitUsage, "--watch-namespace-selector"},
		{"up --demo --watch-namespace-selector=edge=public --watch-namespace=shop", exitUsage, "--watch-namespace and --watch-namespace-selector exclude each other"},
		{"up --once -f " + classless + " --watch-namespace-selector=edge=public", exitUsage, "none, not served here: namespace shop does not match --watch-namespace-selector, edge=public\n"},
		{"trace", exitUsage, "accepts 1 arg"},
		{"trace web", exitUsage, "service/NAMESPACE/NAME"},
		{"trace 10.0.0.1:", exitUsage, "want http://host/path"},
		{"trace 10.0.0.1:80/icmp", exitUsage, "/tcp, /udp or /sctp"},
		{"trace --admin=127.0.0.1:1 10.0.0.1", exitFailed, "quayside: nothing answers at --admin 127.0.0.1:1"},
		{"migrate -f migrate/testdata/metallb.in.yaml", exitDone, "apiVersion: quayside.io/v1alpha1\nkind: IPAddressPool"},
		{"migrate -f migrate/testdata/metallb.in.yaml", exitDone, "note: IPAddressPool lan: spec.colour has no equivalent here"},
		{"migrate -f migrate/testdata/hostile.in.yaml", exitDone, `note: metallb.io/v1beta1 Weather rain\u2029---\u2029kind`},
		{"migrate -f " + hostile, exitUsage, `AddressPool \x1b[2J: protocol "pigeon"`},
		{"up --once -f migrate/testdata/streams.out.yaml -f " + good, exitDone, "kube-system/kube-dns-lb   10.9.0.0     -              lan\n                          not served                  no endpoint: no pod matches the selector k8s-app=kube-dns, as at zero replicas; start one, or correct the selector\nlogs/syslog-lb            10.9.0.1 "},
		{"migrate --only ingresses -f migrate/testdata -o json", exitDone, `"name": "plain"`},
		{"migrate -f migrate/testdata/ingress.in.yaml --ingress-class traefik=inner", exitDone, "  ingressClassName: inner\n"},
		{"migrate -f migrate/testdata/ingress.in.yaml --ingress-class traefik", exitDone, "of class \"nginx\": left alone"},
		{"migrate -f migrate/testdata/ingress.in.yaml --ingress-class =", exitUsage, "want CLASS or CLASS=OURS"},
		{"migrate -f migrate/testdata/ingress.in.yaml --ingress-class=", exitUsage, "want CLASS or CLASS=OURS"},
		{"migrate -f migrate/testdata/ingress.in.yaml --ingress-class =inner", exitDone, "of class \"nginx\": left alone"},
		{"migrate -f " + bad + " --only pools", exitUsage, "want addresses or ingresses"},
		{"migrate -f /does/not/exist.yaml", exitUsage, "/does/not/exist.yaml"},
		{"status --admin=127.0.0.1:1 -o toml", exitUsage, "toml"},
		{"proxy --trusted-proxies=everyone --kubeconfig=/does/not/exist", exitFailed, "/does/not/exist"},
	} {
		var out terminalLess
		code := Run(t.Context(), "dev", append([]string{"quayside"}, strings.Fields(c.args)...), &out, &out)
		if code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("quayside %s: exit code %d, want %d with %q in\n%s", c.args, code, c.code, c.says, out.String())
		}
	}
}

// What a person reads names the command as he may type it, also where `go run`
// calls the binary by the name of the module.
func TestHelpNamesTheCommand(t *testing.T) {
	for binary, want := range map[string]string{
		"/usr/bin/quayside":             "\n  quayside up [flags]\n",
		"/tmp/go-build/exe/quayside.io": "\n  quayside up [flags]\n",
		"/opt/bin/kubectl-quayside":     "\n  kubectl quayside up [flags]\n",
	} {
		var out terminalLess
		if code := Run(t.Context(), "dev", []string{binary, "up", "--help"}, &out, &out); code != exitDone || !strings.Contains(out.String(), want) {
			t.Errorf("%s up --help: exit code %d, want %q in\n%s", binary, code, want, out.String())
		}
	}
}

// What advertisements and peers name that is not there, beside what is right, but for nodes
// that the file has not got.
const unnamedYAML = poolYAML + `---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: lan}
spec: {ipAddressPools: [lan, lam], nodeSelectors: [{matchLabels: {rack: a}}]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64500, peerASN: 64501, peerAddress: 10.0.0.1, bfdProfile: quick, nodeSelectors: [{matchLabels: {rack: a}}]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPAdvertisement
metadata: {name: lan}
spec: {ipAddressPools: [lan], peers: [tor, rot], communities: [nobody]}
---
apiVersion: v1
kind: Service
metadata: {name: given, namespace: default}
spec: {type: LoadBalancer, selector: {app: x}, ports: [{port: 80}]}
`

const poolYAML = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: [10.9.0.0/24]}
`

// The third textbook object, as it was written in its day: no server serves
// this version any more, so it comes from a file.
const oldTextbook = `
apiVersion: extensions/v1beta1
kind: Ingress
metadata:
  name: hosts-and-paths
  namespace: default
  annotations: {kubernetes.io/ingress.class: quayside}
spec:
  rules:
  - host: foo.com
    http:
      paths:
      - {path: /video, backend: {serviceName: video, servicePort: 80}}
      - {path: /store, backend: {serviceName: store, servicePort: http}}
  - host: bar.com
    http:
      paths:
      - {path: /video, backend: {serviceName: video, servicePort: 80}}
      - {path: /store, backend: {serviceName: store, servicePort: http}}
`

// backend is a pod of Service name: the manifests of both, and a real server.
func backend(t *testing.T, name string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s%s", name, r.Host, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: default}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-1, namespace: default, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: %[3]s}]
endpoints: [{addresses: [%[2]q], conditions: {ready: true}}]
`, name, host, port)
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs quayside until the test ends and returns what it prints.
func start(t *testing.T, args ...string) *terminalLess {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out terminalLess
	done := make(chan int)
	go func() { done <- Run(ctx, "dev", append([]string{"quayside"}, args...), &out, &out) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitDone {
			t.Errorf("quayside %s: exit code %d\n%s", strings.Join(args, " "), code, out.String())
		}
	})
	return &out
}

// get asks at for a host and path and returns the status and the body.
func get(at, host, path string) (int, string, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+at+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host, req.Close = host, true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// eventually waits until a request is answered like this.
func eventually(t *testing.T, at, host, path string, status int, says string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		code, body, err := get(at, host, path)
		if err == nil && code == status && strings.Contains(body, says) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("http://%s%s is answered %d %q (%v), want %d with %q", host, path, code, body, err, status, says)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestUpServesTheOldTextbookFromFilesThatChange(t *testing.T) {
	dir, at := t.TempDir(), freeAddress(t)
	writeFile(t, dir, "backends.yaml", backend(t, "video")+backend(t, "store"))
	ingress := writeFile(t, dir, "ingress.yaml", oldTextbook)
	admin := freeAddress(t)
	screen := start(t, "up", "-f", dir, "--http", at, "--https", "", "--admin", admin)

	for _, host := range []string{"foo.com", "bar.com"} {
		eventually(t, at, host, "/video", 200, "video "+host+"/video")
		eventually(t, at, host, "/store/1", 200, "store "+host+"/store/1")
	}
	eventually(t, at, "else.com", "/video", 404, "")
	eventually(t, admin, "", "/healthz", 200, "") // nothing says which of both listens first
	for _, c := range []struct {
		target string
		code   int
		says   string
	}{
		{"http://foo.com/video/1", exitDone, "Nothing on this path is broken"},
		{"http://foo.com/music", exitFailed, "no path of host foo.com matches /music; it has /store, /video"},
		{"service/default/video", exitFailed, "only LoadBalancer has an external address"},
	} {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the address is written behind the routes
			var out terminalLess
			code := Run(t.Context(), "dev", []string{"quayside", "trace", "--admin", admin, c.target}, &out, &out)
			if code == c.code && strings.Contains(out.String(), c.says) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("trace %s: exit code %d, want %d with %q in\n%s", c.target, code, c.code, c.says, out.String())
			}
		}
	}

	writeFile(t, dir, "ingress.yaml", strings.ReplaceAll(oldTextbook, "bar.com", "baz.com"))
	eventually(t, at, "baz.com", "/video", 200, "video")
	eventually(t, at, "bar.com", "/video", 404, "")

	// A broken edit is told, with file and field, and changes nothing.
	writeFile(t, dir, "ingress.yaml", strings.Replace(oldTextbook, "serviceName: video", "serviceNam: video", 1))
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(screen.String(), "serviceNam") || !strings.Contains(screen.String(), filepath.Base(ingress)) {
		if time.Now().After(deadline) {
			t.Fatalf("a broken file is not told:\n%s", screen)
		}
		time.Sleep(10 * time.Millisecond)
	}
	eventually(t, at, "baz.com", "/video", 200, "video")
}

func TestDemoLosesNoRequestAndItsCurlLinesWork(t *testing.T) {
	screen := start(t, "up", "--demo", "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--admin", freeAddress(t))

	lines := regexp.MustCompile(`(?m)^  (curl [^#\n]*)`)
	counts := regexp.MustCompile(`(\d+) requests, (\d+) failed, while (\d+) pods were replaced`)
	deadline := time.Now().Add(40 * time.Second)
	for {
		all := counts.FindAllStringSubmatch(screen.String(), -1)
		if n := len(all); n > 0 && all[n-1][3] != "0" {
			if all[n-1][2] != "0" {
				t.Errorf("the demo lost requests: %s", all[n-1][0])
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no pod was replaced in 40 s:\n%s", screen)
		}
		time.Sleep(50 * time.Millisecond)
	}
	found := lines.FindAllStringSubmatch(screen.String(), -1)
	if len(found) < 5 {
		t.Fatalf("the screen has %d curl lines, want 5:\n%s", len(found), screen)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("curl is not installed, so its lines were not run")
		}
		t.Skip("curl is not installed, so its lines were not run")
	}
	for _, line := range found[:5] {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line[1]+" --silent --show-error --fail").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "answers GET") {
			t.Errorf("%s: %v: %s", line[1], err, out)
		}
	}
}

// On macOS 127.0.0.1 is all there is. A namespace can be made like that.
func TestDemoOnOneAddress(t *testing.T) {
	const script = `ip link set lo up && ip address del 127.0.0.1/8 dev lo && ip address add 127.0.0.1/32 dev lo && exec "$0" "$@"`
	out, err := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", script, os.Args[0],
		"-test.v", "-test.run", "^TestDemoLosesNoRequestAndItsCurlLinesWork$").CombinedOutput()
	switch {
	case os.Geteuid() != 0 && os.Getenv("CI") == "":
		t.Skip("only root can make a network namespace")
	case err != nil || !bytes.Contains(out, []byte("--- PASS")):
		t.Errorf("%v\n%s", err, out)
	}
}
