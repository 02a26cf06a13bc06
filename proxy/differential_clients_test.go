package proxy_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// sameClientCase is what auth-tls-* say, and the directives that ingress-nginx makes
// of that. DIR is where the files are.
type sameClientCase struct {
	with   []string
	server string // beside the authorities
	inside string
	except string // who is judged otherwise, as the option's doc says
}

func sameClientCases() []sameClientCase {
	const on = "ssl_verify_client on; ssl_verify_depth 1;"
	return []sameClientCase{
		{nil, on, "", ""},
		{[]string{"auth-tls-verify-client", "on"}, on, "", ""},
		{[]string{"auth-tls-verify-client", "off"}, "ssl_verify_client off;", "", ""},
		{[]string{"auth-tls-verify-client", "optional"}, "ssl_verify_client optional; ssl_verify_depth 1;", "", ""},
		{[]string{"auth-tls-verify-client", "optional_no_ca"}, "ssl_verify_client optional_no_ca; ssl_verify_depth 1;", "", ""},
		{[]string{"auth-tls-verify-depth", "2"}, "ssl_verify_client on; ssl_verify_depth 2;", "", ""},
		{[]string{"auth-tls-verify-client", "optional_no_ca", "auth-tls-verify-depth", "2"}, "ssl_verify_client optional_no_ca; ssl_verify_depth 2;", "", ""},
		{[]string{"auth-tls-match-cn", "CN=(ann|near)"}, on, `if ($ssl_client_s_dn !~ "CN=(ann|near)") { return 403; }`, "bob"},
		{[]string{"auth-tls-match-cn", "CN=ann", "auth-tls-verify-client", "optional"}, "ssl_verify_client optional; ssl_verify_depth 1;", `if ($ssl_client_s_dn !~ "CN=ann") { return 403; }`, "bob"},
		{[]string{"auth-tls-error-page", "https://errors.test/no"}, on + "error_page 495 496 = https://errors.test/no;", "", ""},
		{[]string{"auth-tls-error-page", "https://errors.test/?from=$request_uri"}, on + "error_page 495 496 = https://errors.test/?from=$request_uri;", "", ""},
		{[]string{"auth-tls-error-page", "https://errors.test/no", "auth-tls-verify-client", "optional"}, "ssl_verify_client optional; ssl_verify_depth 1; error_page 495 496 = https://errors.test/no;", "", ""},
		{[]string{"auth-tls-pass-certificate-to-upstream", "true"}, on, "proxy_set_header ssl-client-cert $ssl_client_escaped_cert;", ""},
		{[]string{"auth-tls-pass-certificate-to-upstream", "true", "auth-tls-verify-client", "optional_no_ca"}, "ssl_verify_client optional_no_ca; ssl_verify_depth 1;",
			"proxy_set_header ssl-client-cert $ssl_client_escaped_cert;", ""},
		{[]string{"auth-tls-secret", "default/revoking"}, on + "ssl_crl DIR/crl;", "", ""},
	}
}

// TestSameClientsAsNginx asks nginx and this proxy over TLS, with certificates good
// and bad, and compares status, Location, and what the backend is told of the client.
func TestSameClientsAsNginx(t *testing.T) {
	binary := findNginx(t)
	k := makeKnown(t)
	files, p := start(t, func(o *proxy.Options) { o.Routes.Classes.Adopt = []string{ingressclass.NginxController} })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range r.Header {
				if strings.HasPrefix(name, "Ssl") && !yield(name) {
					return
				}
			}
		}) {
			fmt.Fprintf(w, "%s=%q ", name, r.Header[name])
		}
	}))
	defer web.Close()
	backend := strings.TrimPrefix(web.URL, "http://")
	crl := k.root.Revoking(t, time.Now().Add(time.Hour), k.bob)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend),
		certificate.Authorities("default", "ca", k.root.PEM()), certificate.Authorities("default", "revoking", k.root.PEM(), crl))
	dir := t.TempDir()
	pair := certificate.Secret(t, "default/pair", time.Now().Add(time.Hour), "*.test")
	for name, text := range map[string][]byte{"crt": pair.Data["tls.crt"], "key": pair.Data["tls.key"], "ca": k.root.PEM(), "crl": pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: crl})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	peer := freeAddress(t)
	var conf strings.Builder
	class := ingressclass.NginxName
	for i, c := range sameClientCases() {
		options := map[string]string{"auth-tls-secret": "default/ca"}
		for j := 0; j < len(c.with); j += 2 {
			options[c.with[j]] = c.with[j+1]
		}
		ing := annotated(fmt.Sprint("case-", i), hostOfCase(i), options)
		ing.Spec.IngressClassName = &class
		files.Put(ing)
		fmt.Fprintf(&conf, "server { listen %s ssl; server_name %s; ssl_certificate %s/crt; ssl_certificate_key %s/key; ssl_client_certificate %s/ca; %s location / { %s"+
			" proxy_set_header ssl-client-verify $ssl_client_verify; proxy_set_header ssl-client-subject-dn $ssl_client_s_dn; proxy_set_header ssl-client-issuer-dn $ssl_client_i_dn; proxy_pass http://%s; } }\n",
			peer, hostOfCase(i), dir, dir, dir, strings.ReplaceAll(c.server, "DIR", dir), c.inside, backend)
	}
	runNginx(t, binary, dir, peer, conf.String())
	last := hostOfCase(len(sameClientCases()))
	files.Put(ingress("last", last, "/", "web", number))
	eventually(t, "the routes are served", func() bool { code, _ := get(t, bound(p, false), last, "/"); return code == 200 })
	clients := map[string]*certificate.Issued{"nobody": nil, "ann": k.ann, "bob": k.bob, "near": k.near, "far": k.far, "late": k.late, "server": k.server, "stranger": k.stranger}
	asked := 0
	for i, c := range sameClientCases() {
		for name, with := range clients {
			if name == c.except {
				continue // his organisation is called "CN=ann", which is no name of his here
			}
			for _, request := range []string{"/x?y=z", "/x\nSsl-Client-Verify: SUCCESS\nSsl-Client-Subject-Dn: CN=ann"} {
				asked++
				var said [2]string
				for j, addr := range []string{peer, bound(p, true)} {
					status, text := by(t, clientOf(t, addr, false, with), hostOfCase(i), hostOfCase(i), request)
					said[j] = clientEssence(status, text)
				}
				if said[0] != said[1] {
					t.Errorf("%v by %s %q:\nnginx: %s\nours:  %s", c.with, name, request, said[0], said[1])
				}
			}
		}
	}
	t.Logf("%d configurations, %d requests", len(sameClientCases()), asked)
}

// clientEssence is what must be the same of a response.
func clientEssence(status int, said string) string {
	kept := fmt.Sprint(status)
	for _, line := range strings.Split(said, "\r\n") {
		if strings.HasPrefix(line, "Location: ") || status == 200 && strings.HasPrefix(line, "Ssl-") {
			kept += " | " + line
		}
	}
	return kept
}
