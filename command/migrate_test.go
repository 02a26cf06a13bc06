package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// Who may read Ingresses, and nothing of MetalLB's, gets what he may read: an API server
// answers 403 for kinds that it does not even have.
func TestMigrateWithFewRights(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/apis/networking.k8s.io/v1/ingresses" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no right to %s"}`, r.URL.Path)
			return
		}
		_, _ = io.WriteString(w, `{"kind": "IngressList", "apiVersion": "networking.k8s.io/v1", "items": [{"metadata": {"namespace": "shop", "name": "site"},
			"spec": {"ingressClassName": "nginx", "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}]}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig := writeFile(t, t.TempDir(), "kubeconfig", fmt.Sprintf(
		"{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL))
	for _, c := range []struct {
		only  string
		code  int
		found bool
		says  string // on standard error
	}{
		{"ingresses", exitDone, true, "NetworkPolicies that keep our proxies from an application, and how certificates are renewed, may be missing here: read /api/v1/services: no right"},
		{"addresses", exitFailed, false, "no right to /apis/metallb.io/v1beta1/ipaddresspools"},
		{"addresses", exitFailed, false, "note: Services that share an address across namespaces may be missing here: read /api/v1/services: no right"},
		{"", exitFailed, true, "no right to /apis/metallb.io/v1beta1/l2advertisements"},
	} {
		var out, says terminalLess
		code := Run(t.Context(), "dev", []string{"quayside", "migrate", "--kubeconfig=" + kubeconfig, "--only=" + c.only}, &out, &says)
		if found := strings.Contains(out.String(), "name: site\n"); code != c.code || found != c.found || !strings.Contains(says.String(), c.says) {
			t.Errorf("--only %q: exit code %d, want %d; the Ingress is printed: %v, want %v; want %q in\n%s", c.only, code, c.code, found, c.found, c.says, says.String())
		}
	}
}

func TestMigrateValues(t *testing.T) {
	dir := t.TempDir()
	good, bad := writeFile(t, dir, "good.yaml", "controller: {replicaCount: 3}"), writeFile(t, dir, "bad.yaml", "a: b: c")
	for _, c := range []struct {
		file string
		code int
		out  string
	}{{good, exitDone, "proxy:\n  replicas: 3\n"}, {bad, exitUsage, ""}, {filepath.Join(dir, "none.yaml"), exitFailed, ""}} {
		var out, says terminalLess
		code := Run(t.Context(), "dev", []string{"quayside", "migrate", "values", "-f", c.file}, &out, &says)
		if code != c.code || out.String() != c.out || (code != exitDone) != (says.String() != "") {
			t.Errorf("%s: exit code %d, %q, and says %q", c.file, code, out.String(), says.String())
		}
	}
}
