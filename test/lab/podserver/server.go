package podserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Reply is what the server saw of one request.
type Reply struct {
	Pod     string      `json:"pod"`
	Node    string      `json:"node"`
	Method  string      `json:"method"`
	Proto   string      `json:"proto"`
	Host    string      `json:"host"`
	Path    string      `json:"path"` // as sent, with the query
	Headers http.Header `json:"headers"`
	Remote  string      `json:"remote"` // address and port of the other end
	Local   string      `json:"local"`  // address and port it arrived at
	Body    int64       `json:"body"`   // bytes read
	Padding string      `json:"padding,omitempty"`
}

// Options name the pod.
type Options struct {
	Pod, Node string
	Listen    []string // addresses; every one answers the same
}

// Run serves until ctx ends, then lets open requests finish.
func Run(ctx context.Context, opts Options) error {
	var listeners []net.Listener
	for _, addr := range opts.Listen {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err // the process ends with it: nothing to close
		}
		listeners = append(listeners, l)
	}
	return serve(ctx, opts, listeners)
}

func serve(ctx context.Context, opts Options, listeners []net.Listener) error {
	plain := handler(opts)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	calls := newCalls(opts)
	defer calls.Stop()
	server := &http.Server{
		Protocols: protocols,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isCall(r) {
				calls.ServeHTTP(w, r)
				return
			}
			plain.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if err := server.Shutdown(stop); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

type connKey struct{}

func handler(opts Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			echo(w, r, opts)
			return
		}
		reply := Reply{
			Pod: opts.Pod, Node: opts.Node,
			Method: r.Method, Proto: r.Proto, Host: r.Host, Path: r.RequestURI,
			Headers: r.Header, Remote: r.RemoteAddr,
		}
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			reply.Local = c.LocalAddr().String()
		}
		reply.Body, _ = io.Copy(io.Discard, r.Body) // a client that goes away shows as a short count
		query := r.URL.Query()
		if d, err := time.ParseDuration(query.Get("delay")); err == nil {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
				return
			}
		}
		if n, err := strconv.Atoi(query.Get("size")); err == nil {
			reply.Padding = strings.Repeat("x", min(max(n, 0), 64<<20))
		}
		body, err := json.Marshal(reply)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Pod", opts.Pod)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if status, err := strconv.Atoi(query.Get("status")); err == nil && status >= 200 && status <= 599 {
			w.WriteHeader(status)
		}
		_, _ = w.Write(body) // the client has gone: nobody is left to answer
	})
}

// echo switches protocols and sends back every byte until the client closes.
func echo(w http.ResponseWriter, r *http.Request, opts Options) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
		r.Header.Get("Upgrade") + "\r\nX-Pod: " + opts.Pod + "\r\nX-Node: " + opts.Node + "\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		return
	}
	_, _ = io.Copy(conn, buffered) // ends when either side closes
}
