package conformance

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root is the product's module.
const root = "../.."

// server is one that speaks HTTP/2 at two addresses.
type server struct{ secure, plain string }

func (s server) at(tls bool) string {
	if tls {
		return s.secure
	}
	return s.plain
}

func (s server) name(tls bool) string {
	if tls {
		return "TLS"
	}
	return "prior knowledge"
}

// pod returns the address of one that reads what it is sent and says more than a few
// bytes, which the cases about windows need.
func pod(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Repeat("a pod says more than a few bytes\n", 30))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// quayside starts our proxy, built from the tree, as `up` has it.
func quayside(t testing.TB) server {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "quayside")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, port, _ := net.SplitHostPort(pod(t))
	manifests := filepath.Join(dir, "objects.yaml")
	write(t, manifests, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: %s}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec:
  ingressClassName: quayside
  defaultBackend: {service: {name: web, port: {name: http}}}
`, port))
	s := server{secure: free(t), plain: free(t)}
	run(t, s, binary, "up", "-f", manifests, "--http", s.plain, "--https", s.secure, "--h2c", "--admin", free(t))
	return s
}

// nginx starts Debian's, which speaks HTTP/2 alone at both addresses.
func nginx(t testing.TB) server {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed (Debian package nginx): ", err)
	}
	dir := t.TempDir()
	certify(t, dir)
	s := server{secure: free(t), plain: free(t)}
	var temporary bytes.Buffer
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	conf := filepath.Join(dir, "nginx.conf")
	write(t, conf, fmt.Sprintf(`
daemon off; master_process off; pid pid; error_log log crit; events {}
http {
	%s access_log off;
	upstream pod { server %s; keepalive 8; }
	server {
		listen %s http2; listen %s ssl http2; ssl_certificate cert.pem; ssl_certificate_key key.pem;
		location / { proxy_pass http://pod; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}`, &temporary, pod(t), s.plain, s.secure))
	run(t, s, binary, "-p", dir, "-c", conf)
	return s
}

// run starts a server and returns once it passes requests on.
func run(t testing.TB, s server, argv ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() string {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		return out.String()
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := client.Get("https://" + s.secure + "/")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK && resp.ProtoMajor == 2 {
				t.Cleanup(func() { stop() })
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not serve: %v\n%s", argv[0], err, stop())
		}
	}
}

// certify writes a certificate and its key.
func certify(t testing.TB, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})))
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// free returns an address that nobody listens on.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
