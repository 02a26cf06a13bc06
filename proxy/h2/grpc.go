package h2

import (
	"bytes"
	"strconv"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// isGRPC reports whether who asks speaks gRPC. Such a client takes any other status
// than 200 for the network's fault, and throws the text away.
func isGRPC(r *exchange.Request) bool {
	const kind = "application/grpc"
	t := r.Header.Get("Content-Type")
	return len(t) >= len(kind) && exchange.EqualFold(t[:len(kind)], kind) && (len(t) == len(kind) || t[len(kind)] == '+' || t[len(kind)] == ';')
}

// The codes of gRPC that we answer with.
const (
	grpcUnknown           = 2
	grpcDeadlineExceeded  = 4
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// grpcStatus is what an answer of ours means to gRPC: as its specification has it
// (http-grpc-status-mapping), but that we know what a 504 and the 4xx about sizes
// are about.
func grpcStatus(status int) int {
	switch status {
	case 400:
		return grpcInternal
	case 401:
		return grpcUnauthenticated
	case 403:
		return grpcPermissionDenied
	case 404:
		return grpcUnimplemented
	case 408, 504:
		return grpcDeadlineExceeded
	case 413, 431:
		return grpcResourceExhausted
	case 429, 502, 503:
		return grpcUnavailable
	}
	return grpcUnknown
}

// statusBlock is headBlock for an answer of ours to a gRPC client: all of it is one
// field block ("trailers only"), and its text the message. The exchange keeps the
// status that filters, metrics and logs know.
func (s *stream) statusBlock() []byte {
	r := &s.ex.Response
	r.Header.Set("Content-Type", "application/grpc")
	b := s.appendFields(frame.AppendStatus(s.block[:0], 200), -1)
	var code [4]byte
	b = frame.AppendField(b, []byte("grpc-status"), strconv.AppendInt(code[:0], int64(grpcStatus(r.Status)), 10))
	s.block = frame.AppendField(b, []byte("grpc-message"), appendMessage(nil, bytes.TrimSpace(r.Text)))
	return s.block
}

// appendMessage appends text as a grpc-message: percent-encoded.
func appendMessage(b, text []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range text {
		if c < ' ' || c > '~' || c == '%' {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
