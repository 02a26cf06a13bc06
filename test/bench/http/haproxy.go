package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// haproxyConfig keeps connections alive on both sides and sets the same forwarding
// fields. Where things change it is as HAProxy's own Ingress controller has it: the hosts
// lie in maps, and a socket takes changes of servers and maps while it runs.
func haproxyConfig(dir string, p plan) string {
	bind, scheme, protocol := haproxyAddr, "http", ""
	if p.http2 || p.work.tls {
		bind, scheme = bind+" ssl crt "+dir+"/tls.pem ssl-min-ver TLSv1.3", "https"
	}
	if p.http2 {
		bind += " alpn h2,http/1.1"
	}
	if p.grpc {
		protocol = " proto h2"
	}
	global, rules, backends := "", "  default_backend back\n", "backend back\n  server one "+backendAddr+protocol+"\n"
	if p.churn {
		global = "  stats socket " + haproxySocket(dir) + " mode 600 level admin\n  stats timeout 1m\n"
		rules = fmt.Sprintf(`  http-request redirect code 301 location %%[req.hdr(host),map(%[1]s)] if { req.hdr(host),map(%[1]s) -m found }
  use_backend %%[req.hdr(host),lower,map(%[2]s,%[3]s)]
`, placesMap(dir), hostsMap(dir), serviceOf(0))
		backends = haproxyBackends()
	}
	return fmt.Sprintf(`
global
  nbthread 1
  maxconn 4096
%[1]sdefaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  http-reuse always
frontend front
  bind %[2]s
  unique-id-format %%[uuid()]
  unique-id-header X-Request-ID
  http-request set-header X-Real-IP %%[src]
  http-request set-header X-Forwarded-For %%[src]
  http-request set-header X-Forwarded-Host %%[req.hdr(host)]
  http-request set-header X-Forwarded-Port %%[dst_port]
  http-request set-header X-Forwarded-Proto %[3]s
  http-request set-header X-Forwarded-Scheme %[3]s
  http-request set-header X-Scheme %[3]s
%[4]s%[5]s`, global, bind, scheme, rules, backends)
}

func haproxySocket(dir string) string { return filepath.Join(dir, "haproxy.sock") }
func placesMap(dir string) string     { return filepath.Join(dir, "places.map") }
func hostsMap(dir string) string      { return filepath.Join(dir, "hosts.map") }

// haproxyBackends are what changes later, as it is at first.
func haproxyBackends() string {
	var text strings.Builder
	_, port, _ := strings.Cut(backendAddr, ":")
	for i := range churningServices {
		fmt.Fprintf(&text, "backend %s\n", serviceOf(i))
		for slot, addr := range endpointsAt(0) {
			fmt.Fprintf(&text, "  server s%d %s:%s\n", slot, addr, port)
		}
	}
	return text.String()
}

// writeMaps writes which host leads where.
func writeMaps(dir string) error {
	var hosts strings.Builder
	for i := range churningServices {
		fmt.Fprintf(&hosts, "%[1]s.example %[1]s\n", serviceOf(i))
	}
	if err := os.WriteFile(hostsMap(dir), []byte(hosts.String()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(placesMap(dir), []byte(changingHost+" "+place(0)+"\n"), 0o600)
}

// command is what makes HAProxy make the nth change. From turn to turn one server of a
// Service gets the address that comes in the place of the one that leaves.
func command(dir string, n int) string {
	turn := n / churningServices
	switch {
	case n%routesEvery == 0:
		return fmt.Sprintf("set map %s %s %s", placesMap(dir), changingHost, place(n))
	case turn == 0:
		return fmt.Sprintf("set server %s/s0 addr %s", serviceOf(n), endpointsAt(0)[0])
	}
	return fmt.Sprintf("set server %s/s%d addr %s", serviceOf(n), (turn-1)%readyEndpoints, endpointsAt(n)[readyEndpoints-1])
}

// tellHAProxy makes changes through the socket, on one connection.
func (c *churn) tellHAProxy(dir string) func(context.Context, int) error {
	var in *bufio.Reader
	say := func(line string) (string, error) {
		if _, err := fmt.Fprintln(c.conn, line); err != nil {
			return "", err
		}
		return in.ReadString('>')
	}
	return func(ctx context.Context, n int) (err error) {
		if c.conn == nil {
			var dialer net.Dialer
			if c.conn, err = dialer.DialContext(ctx, "unix", haproxySocket(dir)); err != nil {
				return err
			}
			in = bufio.NewReader(c.conn)
			if _, err := say("prompt"); err != nil {
				return err
			}
		}
		line := command(dir, n)
		said, err := say(line)
		if said = strings.Trim(said, " \n>"); err == nil && said != "" && !strings.Contains(said, "changed from") && !strings.HasPrefix(said, "no need to change") {
			err = fmt.Errorf("%q was answered %q", line, said)
		}
		return err
	}
}
