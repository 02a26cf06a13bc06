package podserver

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

// PodMetadata is the metadata of every answer over gRPC that names the pod.
const PodMetadata = "x-pod"

// newCalls is the gRPC side of the pod: the health service, which says SERVING.
func newCalls(opts Options) *grpc.Server {
	name := metadata.Pairs(PodMetadata, opts.Pod)
	s := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := grpc.SetHeader(ctx, name); err != nil {
				return nil, err
			}
			return next(ctx, r)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := stream.SetHeader(name); err != nil {
				return err
			}
			return next(srv, stream)
		}))
	healthpb.RegisterHealthServer(s, health.NewServer())
	return s
}

func isCall(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}
