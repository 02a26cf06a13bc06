package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// grpcPod is a pod that speaks gRPC.
type grpcPod struct {
	pb.UnimplementedTestServiceServer
	name   string
	health *health.Server
	ended  chan error // of calls that wait for their client: why they ended
}

// grpcServer starts a pod at an address, with TLS or without, and returns the one it got.
func grpcServer(t *testing.T, at string, secure bool) (*grpcPod, string) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if secure {
		secret := certificate.Secret(t, "default/x", time.Now().Add(time.Hour), "pod.example")
		pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	}
	s := grpc.NewServer(options...)
	p := &grpcPod{health: health.NewServer(), ended: make(chan error, 10)}
	pb.RegisterTestServiceServer(s, p)
	healthpb.RegisterHealthServer(s, p.health)
	reflection.Register(s)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return p, l.Addr().String()
}

func (p *grpcPod) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	in, _ := metadata.FromIncomingContext(ctx)
	if _, ok := ctx.Deadline(); !ok && len(in.Get("wants-deadline")) > 0 {
		return nil, status.Error(codes.Internal, "no deadline has come")
	}
	grpc.SetHeader(ctx, metadata.Pairs("echo-initial", strings.Join(in.Get("x-initial"), ",")))
	grpc.SetTrailer(ctx, metadata.Pairs("echo-trailing-bin", strings.Join(in.Get("x-trailing-bin"), ",")))
	if s := r.GetResponseStatus(); s != nil {
		return nil, status.Error(codes.Code(s.Code), s.Message)
	}
	if r.GetResponseSize() < 0 { // waits for its client to go
		<-ctx.Done()
		p.ended <- ctx.Err()
		return nil, ctx.Err()
	}
	return &pb.SimpleResponse{ServerId: p.name, Payload: &pb.Payload{Body: make([]byte, r.GetResponseSize())}}, nil
}

func (p *grpcPod) StreamingOutputCall(r *pb.StreamingOutputCallRequest, s grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	for _, part := range r.GetResponseParameters() {
		if err := s.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, part.GetSize())}}); err != nil {
			return err
		}
	}
	if r.GetResponseStatus() != nil {
		<-s.Context().Done()
		p.ended <- s.Context().Err()
	}
	return nil
}

func (p *grpcPod) StreamingInputCall(s grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	var size int32
	for {
		r, err := s.Recv()
		if err == io.EOF {
			return s.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: size})
		}
		if err != nil {
			p.ended <- err
			return err
		}
		size += int32(len(r.GetPayload().GetBody()))
	}
}

func (p *grpcPod) FullDuplexCall(s grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	for {
		r, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			p.ended <- err
			return err
		}
		if st := r.GetResponseStatus(); st != nil {
			return status.Error(codes.Code(st.Code), st.Message)
		}
		for _, part := range r.GetResponseParameters() {
			if err := s.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, part.GetSize())}}); err != nil {
				return err
			}
		}
	}
}

// grpcPath is one way of gRPC through the proxy.
type grpcPath struct {
	name     string
	frontTLS bool
	protocol string // backend-protocol, or nothing
	app      string // appProtocol
}

func grpcPaths() []grpcPath {
	return []grpcPath{
		{"h2c to h2c", false, "GRPC", ""},
		{"TLS to h2c", true, "H2C", ""},
		{"TLS to TLS", true, "GRPCS", ""},
		{"by appProtocol", false, "", "kubernetes.io/h2c"},
	}
}

// serveGRPC runs a proxy before pods at addrs, and returns a client of it.
func serveGRPC(t *testing.T, w grpcPath, addrs ...string) *grpc.ClientConn {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	svc := service("pod", corev1.ServicePort{Port: 80})
	if w.app != "" {
		svc.Spec.Ports[0].AppProtocol = &w.app
	}
	ing := ingress("pod", "pod.example", "/", "pod", number)
	if w.protocol != "" {
		ing.Annotations = map[string]string{"ingress.quayside.io/backend-protocol": w.protocol}
	}
	secret := certificate.Secret(t, "default/pod", time.Now().Add(time.Hour), "pod.example")
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"pod.example"}, SecretName: "pod"}}
	ing.Annotations = withOption(ing.Annotations, "ingress.quayside.io/ssl-redirect", "false")
	objects := []snapshot.Object{svc, ing, secret}
	if len(addrs) > 0 {
		objects = append(objects, slice("pod", "", addrs...))
	}
	files.Put(objects...)
	security := insecure.NewCredentials()
	if w.frontTLS {
		security = credentials.NewTLS(&tls.Config{RootCAs: certificate.Roots(secret), ServerName: "pod.example"})
	}
	eventually(t, "the route is served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) > 0 })
	cc, err := grpc.NewClient("passthrough:///"+bound(p, w.frontTLS), grpc.WithTransportCredentials(security), grpc.WithAuthority("pod.example"), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func withOption(a map[string]string, key, value string) map[string]string {
	if a == nil {
		a = map[string]string{}
	}
	a[key] = value
	return a
}

// within is a context for a call that must not hang.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Real clients and servers of gRPC, with the proxy between them: every kind of
// call, metadata both ways, statuses, deadlines and cancels.
func TestGRPC(t *testing.T) {
	for _, w := range grpcPaths() {
		t.Run(w.name, func(t *testing.T) {
			pod, addr := grpcServer(t, "127.0.0.1:0", w.protocol == "GRPCS")
			cc := serveGRPC(t, w, addr)
			c := pb.NewTestServiceClient(cc)
			t.Run("unary", func(t *testing.T) { testUnary(t, c) })
			t.Run("statuses", func(t *testing.T) { testStatuses(t, c, cc) })
			t.Run("streams", func(t *testing.T) { testStreams(t, c) })
			t.Run("conversation", func(t *testing.T) { testConversation(t, c) })
			t.Run("deadlines and cancels", func(t *testing.T) { testCancels(t, c, pod) })
			t.Run("health and reflection", func(t *testing.T) { testServices(t, cc, pod) })
		})
	}
}

func testUnary(t *testing.T, c pb.TestServiceClient) {
	ctx := metadata.AppendToOutgoingContext(within(t), "x-initial", "a", "x-trailing-bin", "\x00\xff", "wants-deadline", "1")
	var header, trailer metadata.MD
	r, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: 314159, Payload: &pb.Payload{Body: make([]byte, 271828)}}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil || len(r.GetPayload().GetBody()) != 314159 {
		t.Fatalf("%d bytes, %v", len(r.GetPayload().GetBody()), err)
	}
	if got := header.Get("echo-initial"); len(got) != 1 || got[0] != "a" {
		t.Errorf("initial metadata %q", got)
	}
	if got := trailer.Get("echo-trailing-bin"); len(got) != 1 || got[0] != "\x00\xff" {
		t.Errorf("trailing metadata %q", got)
	}
	done := make(chan error, 50)
	for range cap(done) {
		go func() {
			_, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: 100_000, Payload: &pb.Payload{Body: make([]byte, 50_000)}})
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func testStatuses(t *testing.T, c pb.TestServiceClient, cc *grpc.ClientConn) {
	message := "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
	_, err := c.UnaryCall(within(t), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: 2, Message: message}})
	if s := status.Convert(err); s.Code() != codes.Unknown || s.Message() != message {
		t.Errorf("got %v %q", s.Code(), s.Message())
	}
	if _, err := pb.NewUnimplementedServiceClient(cc).UnimplementedCall(within(t), &pb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a service that is not there: %v", err)
	}
	s, err := c.FullDuplexCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Send(&pb.StreamingOutputCallRequest{ResponseStatus: &pb.EchoStatus{Code: 9, Message: "no"}})
	if _, err := s.Recv(); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a call that the server ends: %v", err)
	}
}

func testStreams(t *testing.T, c pb.TestServiceClient) {
	up, err := c.StreamingInputCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for i := range 100 {
		want += 5000 * i
		if err := up.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 5000*i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := up.CloseAndRecv(); err != nil || int(r.GetAggregatedPayloadSize()) != want {
		t.Errorf("%d of %d bytes went up, %v", r.GetAggregatedPayloadSize(), want, err)
	}
	var parts []*pb.ResponseParameters
	for i := range 100 {
		parts = append(parts, &pb.ResponseParameters{Size: int32(5000 * i)})
	}
	down, err := c.StreamingOutputCall(within(t), &pb.StreamingOutputCallRequest{ResponseParameters: parts})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for {
		r, err := down.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got += len(r.GetPayload().GetBody())
	}
	if got != want {
		t.Errorf("%d of %d bytes came down", got, want)
	}
}

// testConversation sends only when an answer has come, so that nothing may be kept
// back on the way.
func testConversation(t *testing.T, c pb.TestServiceClient) {
	s, err := c.FullDuplexCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		size := int32(i * 1000)
		if err := s.Send(&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: size}}}); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Recv(); err != nil || len(r.GetPayload().GetBody()) != int(size) {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	s.CloseSend()
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	s, err = c.FullDuplexCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("nothing said: %v", err)
	}
}

// testCancels ends calls from the client's side: the pod must hear of it.
func testCancels(t *testing.T, c pb.TestServiceClient, pod *grpcPod) {
	heard := func(what string) {
		t.Helper()
		select {
		case <-pod.ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the pod was not told", what)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: -1}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("past its deadline: %v", err)
	}
	heard("a deadline")
	ctx, cancel = context.WithCancel(t.Context())
	down, err := c.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{
		ResponseParameters: []*pb.ResponseParameters{{Size: 10}}, ResponseStatus: &pb.EchoStatus{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := down.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	heard("a cancelled download")
	ctx, cancel = context.WithCancel(t.Context())
	up, err := c.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	up.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: []byte("x")}})
	cancel()
	if _, err := up.CloseAndRecv(); status.Code(err) != codes.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	// The pod may never have heard of a call that was cancelled before its head left.
	ctx, cancel = context.WithCancel(t.Context())
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.Send(&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 1}}})
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	heard("a cancelled conversation")
}

func testServices(t *testing.T, cc *grpc.ClientConn, pod *grpcPod) {
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	watch, err := healthpb.NewHealthClient(cc).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		r, err := watch.Recv()
		if err != nil || r.GetStatus() != want {
			t.Fatalf("health %v, %v, want %v", r.GetStatus(), err, want)
		}
		pod.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	}
	s, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	r, err := s.Recv()
	if err != nil || len(r.GetListServicesResponse().GetService()) < 3 {
		t.Errorf("reflection: %v, %v", r, err)
	}
}

// What we answer ourselves, a gRPC client understands.
func TestGRPCErrors(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()
	for _, c := range []struct {
		name  string
		addrs []string
		host  string
		want  codes.Code
		text  string
	}{
		{"no endpoint", nil, "", codes.Unavailable, "503 Service Unavailable"},
		{"connection refused", []string{refused.Addr().String()}, "", codes.Unavailable, "refused the connection"},
		{"a pod that speaks HTTP/1.1", []string{backend(t, "plain")}, "", codes.Unavailable, "invalid response"},
		{"no route", nil, "nobody.example", codes.Unimplemented, "404 Not Found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cc := serveGRPC(t, grpcPaths()[0], c.addrs...)
			var options []grpc.CallOption
			if c.host != "" {
				options = append(options, grpc.CallAuthority(c.host))
			}
			_, err := pb.NewTestServiceClient(cc).UnaryCall(within(t), &pb.SimpleRequest{}, options...)
			if s := status.Convert(err); s.Code() != c.want || !strings.Contains(s.Message(), c.text) {
				t.Errorf("got %v %q, want %v %q", s.Code(), s.Message(), c.want, c.text)
			}
		})
	}
}

// Calls over one connection of the client are spread over the pods.
func TestGRPCIsBalancedByCall(t *testing.T) {
	var addrs []string
	asked := map[string]int{}
	port := "0"
	for i := range 3 {
		p, addr := grpcServer(t, fmt.Sprintf("127.0.0.%d:%s", i+1, port), false)
		_, port, _ = net.SplitHostPort(addr)
		p.name = addr
		addrs = append(addrs, addr)
	}
	cc := serveGRPC(t, grpcPaths()[0], addrs...)
	c := pb.NewTestServiceClient(cc)
	for range 9 {
		r, err := c.UnaryCall(within(t), &pb.SimpleRequest{})
		if err != nil {
			t.Fatal(err)
		}
		asked[r.GetServerId()]++
	}
	for _, addr := range addrs {
		if asked[addr] != 3 {
			t.Errorf("of nine calls the pods got %v", asked)
			break
		}
	}
}
