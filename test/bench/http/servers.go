package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sync/errgroup"

	"quayside.io/cluster"
	"quayside.io/proxy"
)

// profileVariable is where Quayside writes its CPU profile, if anywhere.
const profileVariable = "QUAYSIDE_BENCH_PROFILE"

// tlsVariable makes Quayside serve HTTPS, with HTTP/2, instead of HTTP.
const tlsVariable = "QUAYSIDE_BENCH_TLS"

// serveBackend answers every request with the same bytes, as cheaply as Go can,
// so that the proxies are what is busy.
func serveBackend(addrs ...string) error {
	size := sizeAsked()
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		size, strings.Repeat("x", size))
	var all errgroup.Group
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		all.Go(func() error {
			for {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				go answerAll(c, answer)
			}
		})
	}
	return all.Wait()
}

// answerAll answers each request of a connection.
func answerAll(c net.Conn, answer []byte) {
	defer c.Close()
	buf := make([]byte, 8<<10)
	for n := 0; ; {
		k, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		if n += k; bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			n = 0
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

// serveQuayside is the proxy over one Ingress, as `quayside up` runs it.
func serveQuayside(ctx context.Context, addr, backend, options string) error {
	set, err := optionsNamed(options)
	if err != nil {
		return err
	}
	if path := os.Getenv(profileVariable); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		go func() { <-terminated; stop() }()
	}
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{})
	if err != nil {
		return err
	}
	putObjects(files, netip.MustParseAddrPort(backend), &set)
	o := proxy.Options{Source: files.Source, HTTP: addr, AllowLoopback: true, GracePeriod: time.Second}
	if os.Getenv(tlsVariable) != "" {
		o.HTTP, o.HTTPS, o.HTTP2 = "", addr, true
	}
	p, err := proxy.New(o)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return files.Run(ctx) })
	g.Go(func() error { return p.Run(ctx) })
	if socket := os.Getenv(churnVariable); socket != "" {
		g.Go(func() error { return serveChanges(ctx, socket, files) })
	}
	return g.Wait()
}

func putObjects(files *cluster.Files, backend netip.AddrPort, options *optionSet) {
	class, name, port := "quayside", "", int32(backend.Port())
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web"}
	slice := meta
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	files.Put(
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: slice, AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{backend.Addr().String()}}},
		},
	)
	options.put(files, forCalls(&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{
		IngressClassName: &class,
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
		}},
	}}))
}
