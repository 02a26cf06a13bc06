package admin

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Access says who sees /metrics, /state and /trace. The zero value is everybody who
// reaches the address.
type Access struct {
	// Loopback lets in who comes over the loopback of this machine or pod.
	Loopback bool
	// Review, if set, is asked about the bearer token of each request, and
	// everything is served over TLS, so that no token travels in the clear.
	Review Review
	// CertFile and KeyFile hold a certificate and its key as PEM. They are read
	// again when they change. Both empty: one is made at the start and signs itself.
	CertFile, KeyFile string
}

// Review says whose a token is, and whether that user may get a path. No user: the
// token is nobody's. The identity is that of the user, whichever token it shows; where
// mayGet knows of it that it may, nobody else need be asked. An error: it could not be
// found out.
type Review func(ctx context.Context, token, path string, mayGet func(identity string) bool) (user, identity string, allowed bool, err error)

// ForwardedToken is the header of a token that comes by way of the API server's proxy
// to Services and Pods, which keeps Authorization for itself.
const ForwardedToken = "Quayside-Authorization"

// retryAfter is what a client is told that comes at a bad moment.
const retryAfter = "1"

// Protect sets who sees more than the health of the process. It comes before Run.
func (s *Server) Protect(a Access) {
	s.access = a
	if a.Review != nil {
		s.judge = newJudge(a.Review, time.Now)
	}
}

// page serves a path to those who have access.
func (s *Server) page(path string, serve http.HandlerFunc) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		if s.admits(w, r, path) {
			serve(w, r)
		}
	})
}

// admits answers whoever has no access, and says so.
func (s *Server) admits(w http.ResponseWriter, r *http.Request, path string) bool {
	switch {
	case s.access.Loopback:
		if isLocal(r) {
			return true
		}
		http.Error(w, "this page is served on the loopback only: `kubectl port-forward` reaches it", http.StatusForbidden)
		return false
	case s.judge == nil:
		return true
	}
	scheme, token, _ := strings.Cut(cmp.Or(r.Header.Get("Authorization"), r.Header.Get(ForwardedToken)), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		unauthorized(w, "this page needs a bearer token of a user who may get "+path)
		return false
	}
	switch v, err := s.judge.of(r.Context(), token, path); {
	case err != nil:
		s.log.Debug("nobody could be asked about a token", "error", err)
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "the API server cannot be asked about the token", http.StatusServiceUnavailable)
		return false
	case v.user == "":
		unauthorized(w, "the API server does not know the token")
		return false
	case !v.allowed:
		http.Error(w, fmt.Sprintf("%s may not get the non-resource URL %s", v.user, path), http.StatusForbidden)
		return false
	}
	return true
}

func unauthorized(w http.ResponseWriter, why string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, why, http.StatusUnauthorized)
}

// isLocal reports whether both ends of a connection are loopback addresses. The
// near end alone says little: where route_localnet is set, as kube-proxy may, a
// neighbour on the LAN can send to 127.0.0.1 (CVE-2020-8558). A name in Host that
// is no loopback is a web page that has bent its own name to this address.
func isLocal(r *http.Request) bool {
	near, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return near != nil && isLoopback(near.String()) && isLoopback(r.RemoteAddr) && isLoopbackName(r.Host)
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func isLoopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
