package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The cores, as taskset names them.
const (
	loadCore  = "0"
	proxyCore = "1"
)

const (
	quaysideAddr = "127.0.0.1:18181"
	nginxAddr    = "127.0.0.1:18182"
	haproxyAddr  = "127.0.0.1:18183"
)

// peer is a proxy and how to start it in the foreground.
type peer struct {
	name    string
	addr    string
	command *exec.Cmd
	missing string // why it cannot be measured
	churn   *churn // nil: nothing changes
	mayFail bool   // a request; that is printed
}

func peers(dir string, p plan) ([]peer, error) {
	options, err := optionsNamed(p.options)
	if err != nil {
		return nil, err
	}
	ours := peer{name: "quayside", addr: quaysideAddr, command: selfAs("quayside", p.profile)}
	ours.command.Env = append(ours.command.Env, optionsVariable+"="+p.options)
	if p.http2 || p.work.tls {
		ours.command.Env = append(ours.command.Env, tlsVariable+"=1")
		if err := writeCertificate(dir); err != nil {
			return nil, err
		}
	}
	text := nginxConfig(dir, p, &options)
	if p.grpc {
		ours.command.Env = append(ours.command.Env, grpcVariable+"=1")
		text = nginxForCalls(dir)
	}
	nginx := external("nginx", nginxAddr, dir, text, "-c", "%s", "-p", dir)
	if p.options != "" {
		if err := os.Chmod(dir, 0o755); err != nil { // nginx reads users as another user
			return nil, err
		}
		return []peer{ours, nginx}, os.WriteFile(filepath.Join(dir, "users"), []byte(users), 0o644)
	}
	haproxy := external("haproxy", haproxyAddr, dir, haproxyConfig(dir, p), "-f", "%s")
	if p.churn {
		return churningPeers(dir, ours, nginx, haproxy)
	}
	return []peer{ours, nginx, haproxy}, nil
}

// selfAs is this program in another role.
func selfAs(role, profile string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, profileVariable+"="+profile, "GOMAXPROCS=1")
	return cmd
}

// external is a proxy of somebody else with its configuration; "%s" in args is
// where that lies.
func external(name, addr, dir, config string, args ...string) peer {
	p := peer{name: name, addr: addr}
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		p.missing = "it is not installed"
		return p
	}
	file := filepath.Join(dir, name+".conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		p.missing = err.Error()
		return p
	}
	for i, a := range args {
		if a == "%s" {
			args[i] = file
		}
	}
	p.command = exec.Command(path, args...)
	return p
}

// forwardingFields are what ingress-nginx tells backends beyond Host and
// X-Forwarded-For.
const forwardingFields = `
      proxy_set_header X-Request-ID $request_id;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Port $server_port;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Scheme $scheme;
      proxy_set_header X-Scheme $scheme;`

// nginxConfig is that of ingress-nginx as far as it concerns one request: keep
// alive on both sides and the same forwarding headers.
func nginxConfig(dir string, p plan, options *optionSet) string {
	host := "proxy_set_header Host $http_host;"
	if strings.Contains(options.location, "set_header Host") {
		host = ""
	}
	fields := forwardingFields
	if p.work.minimal {
		fields = ""
	}
	listen := nginxAddr
	if p.http2 || p.work.tls {
		listen += fmt.Sprintf(" ssl http2; ssl_certificate %[1]s/tls.crt; ssl_certificate_key %[1]s/tls.key; ssl_protocols TLSv1.3", dir)
	}
	return fmt.Sprintf(`
daemon off;
master_process off; # a worker would outlive a master that is killed
pid %[1]s/nginx.pid;
error_log %[1]s/nginx.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 100000000;
  %[4]s
  upstream backend { server %[2]s; keepalive 320; keepalive_requests 100000000; }
  server {
    listen %[3]s;
    location %[5]s {
      %[6]s
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Connection "";
      %[7]s
      proxy_set_header X-Forwarded-For $remote_addr;
      %[8]s
      proxy_pass http://backend;
    }
  }
}
`, dir, backendAddr, listen, options.config(options.http, dir), options.place(), options.config(options.location, dir), host, fields)
}

// writeCertificate makes the kind of certificate that Quayside makes for itself.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"bench"}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": secret, "tls.pem": append(certificate, secret...)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
