package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	pb "google.golang.org/grpc/interop/grpc_testing"
	networkingv1 "k8s.io/api/networking/v1"
)

// grpcVariable tells Quayside that the backend speaks gRPC.
const grpcVariable = "QUAYSIDE_BENCH_GRPC"

// serveCalls answers unary calls.
func serveCalls(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.MaxConcurrentStreams(1000))
	pb.RegisterTestServiceServer(s, callee{})
	return s.Serve(l)
}

type callee struct {
	pb.UnimplementedTestServiceServer
}

// UnaryCall implements pb.TestServiceServer.
func (callee) UnaryCall(_ context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: make([]byte, r.GetResponseSize())}}, nil
}

// forCalls makes an Ingress lead to serveCalls, if that is measured.
func forCalls(ing *networkingv1.Ingress) *networkingv1.Ingress {
	if os.Getenv(grpcVariable) != "" {
		ing.Annotations = map[string]string{"ingress.quayside.io/backend-protocol": "GRPC"}
	}
	return ing
}

// loadCalls is loadHTTP2 with unary calls, 20 on each connection: nginx needs a
// connection to the backend for each, and keeps 320. The body has as many bytes both
// ways.
func loadCalls(ctx context.Context, addr string, d time.Duration) (loaded, error) {
	if err := checkCall(ctx, addr); err != nil {
		return loaded{}, err
	}
	message, err := encoding.GetCodecV2(proto.Name).Marshal(&pb.SimpleRequest{ResponseSize: bodySize, Payload: &pb.Payload{Body: make([]byte, bodySize)}})
	if err != nil {
		return loaded{}, err
	}
	file, err := os.CreateTemp("", "quayside-bench-call-")
	if err != nil {
		return loaded{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(message.Len())) // not compressed
	if _, err := file.Write(append(frame, message.Materialize()...)); err != nil {
		return loaded{}, err
	}
	return h2load(ctx, d, "-m20", "-d", file.Name(), "-H", "content-type: application/grpc", "-H", "te: trailers", "https://"+addr+"/grpc.testing.TestService/UnaryCall")
}

// checkCall sees to it that calls are answered: to h2load an error of gRPC is a
// success.
func checkCall(ctx context.Context, addr string) error {
	cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		return err
	}
	defer cc.Close()
	r, err := pb.NewTestServiceClient(cc).UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: bodySize}, grpc.WaitForReady(true))
	if n := len(r.GetPayload().GetBody()); err == nil && n != bodySize {
		err = fmt.Errorf("%d bytes were answered, want %d", n, bodySize)
	}
	return err
}

// nginxForCalls is nginxConfig with grpc_pass.
func nginxForCalls(dir string) string {
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
  upstream backend { server %[2]s; keepalive 320; keepalive_requests 100000000; }
  server {
    listen %[3]s ssl http2;
    ssl_certificate %[1]s/tls.crt;
    ssl_certificate_key %[1]s/tls.key;
    ssl_protocols TLSv1.3;
    location / {
      grpc_set_header Host $http_host;
      grpc_set_header X-Request-ID $request_id;
      grpc_set_header X-Real-IP $remote_addr;
      grpc_set_header X-Forwarded-For $remote_addr;
      grpc_set_header X-Forwarded-Host $http_host;
      grpc_set_header X-Forwarded-Port $server_port;
      grpc_set_header X-Forwarded-Proto $scheme;
      grpc_set_header X-Forwarded-Scheme $scheme;
      grpc_set_header X-Scheme $scheme;
      grpc_pass grpc://backend;
    }
  }
}
`, dir, backendAddr, nginxAddr)
}
