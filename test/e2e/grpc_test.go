package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"quayside.io/test/lab"
	"quayside.io/test/lab/podserver"
)

// A gRPC client on the LAN reaches pods through an Ingress whose backends speak gRPC:
// its calls over one connection are spread over the pods, a stream stays open, and
// without pods it hears what gRPC knows.
func TestGRPCThroughIngress(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	var pods []*lab.Pod
	for n := 1; n <= 3; n++ {
		pods = append(pods, e.Pod(n, fmt.Sprintf("calls-%d", n), lab.Labels{"app": "calls"}))
	}
	e.Apply(clusterIPServices("calls"))
	e.Apply(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: calls
  annotations: {ingress.quayside.io/backend-protocol: GRPC}
spec:
  ingressClassName: quayside
  rules:
  - host: calls.example.com
    http:
      paths:
      - path: /grpc.health.v1.Health
        pathType: Prefix
        backend: {service: {name: calls, port: {name: http}}}
`)
	address, laptop := e.ingressAddress("calls"), e.Client("laptop")
	cc, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(address, "443"),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, ServerName: "calls.example.com"})),
		grpc.WithAuthority("calls.example.com"), grpc.WithDisableRetry(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return laptop.Dial(ctx, "tcp", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	health := healthpb.NewHealthClient(cc)
	check := func() (pod string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), settle)
		defer cancel()
		var header metadata.MD
		r, err := health.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.WaitForReady(true))
		if err == nil && r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			err = fmt.Errorf("%v", r.GetStatus())
		}
		if names := header.Get(podserver.PodMetadata); len(names) == 1 {
			pod = names[0]
		}
		return pod, err
	}
	e.Eventually(settle, func() error { // the route and all pods have to be known first
		seen := map[string]bool{}
		for range 30 {
			pod, err := check()
			if err != nil {
				return err
			}
			seen[pod] = true
		}
		if len(seen) != len(pods) {
			return fmt.Errorf("30 calls saw %d pods, want %d", len(seen), len(pods))
		}
		return nil
	})
	watch, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the stream says %v, %v", r.GetStatus(), err)
	}
	for range 20 {
		if _, err := check(); err != nil {
			t.Errorf("beside an open stream: %v", err)
		}
	}
	for _, p := range pods {
		p.SetReady(false)
	}
	e.Eventually(settle, func() error {
		if _, err := check(); status.Code(err) != codes.Unavailable {
			return fmt.Errorf("without pods: %v", err)
		}
		return nil
	})
}
