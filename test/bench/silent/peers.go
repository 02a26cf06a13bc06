package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"quayside.io/cluster"
	"quayside.io/cluster/manifest"
	"quayside.io/proxy"
)

const quaysideAddr, nginxAddr, haproxyAddr = "127.0.0.1:18181", "127.0.0.1:18182", "127.0.0.1:18183"

// peer is a proxy.
type peer struct {
	name, addr string
	config     string   // the content of its file
	args       []string // "%s" is that file
}

// peers are all of them, whose files lie in dir.
func peers(dir string) []peer {
	var servers, checked strings.Builder
	for i, address := range pods() {
		fmt.Fprintf(&servers, "server %s:%s; ", address, podPort)
		fmt.Fprintf(&checked, "  server s%d %s:%s check inter 2s\n", i, address, podPort)
	}
	return []peer{
		{name: "quayside", addr: quaysideAddr},
		{"nginx", nginxAddr, fmt.Sprintf(`
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream pods { %[2]s keepalive 320; }
  server {
    listen %[3]s;
    location / {
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Connection "";
      proxy_connect_timeout 5s;
      proxy_read_timeout 60s;
      proxy_next_upstream error timeout;
      proxy_next_upstream_tries 3;
      proxy_pass http://pods;
    }
  }
}
`, dir, servers.String(), nginxAddr), []string{"-c", "%s", "-p", dir}},
		{"haproxy", haproxyAddr, fmt.Sprintf(`
global
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  option redispatch
frontend front
  bind %s
  default_backend back
backend back
%s`, haproxyAddr, checked.String()), []string{"-f", "%s"}},
	}
}

// start runs the proxy until stop is called, and waits until it accepts connections.
func (p peer) start(dir string) (stop func(), err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+roleQuayside)
	if p.config != "" {
		if cmd, err = p.command(dir); err != nil {
			return nil, err
		}
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			c.Close()
			return stop, nil
		}
		if time.Now().After(deadline) {
			stop()
			return nil, err
		}
	}
}

// command is that of a peer that has a file.
func (p peer) command(dir string) (*exec.Cmd, error) {
	path, err := exec.LookPath(p.name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + p.name); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(dir, p.name+".conf")
	var args []string
	for _, a := range p.args {
		args = append(args, strings.ReplaceAll(a, "%s", file))
	}
	return exec.Command(path, args...), os.WriteFile(file, []byte(p.config), 0o600)
}

// serveQuayside is the proxy over one Ingress, as `quayside up` runs it.
func serveQuayside(ctx context.Context) error {
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{})
	if err != nil {
		return err
	}
	read := manifest.Decode("pods.yaml", fmt.Appendf(nil, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {ingressClassName: quayside, defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: %s}]
endpoints: [{addresses: [%s]}]
`, podPort, strings.Join(pods(), "]}, {addresses: [")))
	files.Put(read.Objects...)
	p, err := proxy.New(proxy.Options{Source: files.Source, HTTP: quaysideAddr, AllowLoopback: true})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return files.Run(ctx) })
	g.Go(func() error { return p.Run(ctx) })
	return g.Wait()
}
