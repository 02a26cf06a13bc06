package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"time"

	"quayside.io/test/lab/podserver"
)

// Host is anything a test can stand on and look at the network from: a
// Client, a Node, a Pod.
type Host struct {
	ns   *netns
	view *Cluster
}

// Client is a machine on the LAN that is no part of the cluster.
type Client struct {
	Host
	name string
	lan  *lan
	host int
}

// Client returns the client of that name, and makes it first if need be. The
// name is at most 15 bytes long, since an interface gets it, too.
func (v *Cluster) Client(name string) *Client {
	v.helper()
	return v.clientOn(v.lan, name)
}

func (v *Cluster) clientOn(l *lan, name string) *Client {
	v.helper()
	v.mu.Lock()
	known := v.clients[name]
	v.mu.Unlock()
	if known != nil {
		return &Client{Host: Host{ns: known.ns, view: v}, name: name, lan: known.lan, host: known.host}
	}
	c, err := v.newClient(l, name)
	if c != nil { // also half made: the next test may want the name
		v.onEnd(func() {
			v.mu.Lock()
			delete(v.clients, name)
			v.mu.Unlock()
			if err := errors.Join(l.unplug(name), c.ns.close()); err != nil {
				v.t.Error(err)
			}
		})
	}
	v.must(err)
	return c
}

func (v *Cluster) newClient(l *lan, name string) (*Client, error) {
	if len(name) == 0 || len(name) > 15 {
		return nil, fmt.Errorf("lab: client name %q: must have 1 to 15 bytes", name)
	}
	v.mu.Lock()
	host := firstClient + 1
	for used := true; used; {
		used = false
		for _, other := range v.clients {
			if other.host == host {
				used, host = true, host+1
			}
		}
	}
	if host > lastClient {
		v.mu.Unlock()
		return nil, fmt.Errorf("lab: no LAN address left for client %q", name)
	}
	ns, err := newNetns(v.run.netnsName(name))
	if err != nil {
		v.mu.Unlock()
		return nil, err
	}
	c := &Client{Host: Host{ns: ns, view: v}, name: name, lan: l, host: host}
	v.clients[name] = c
	v.mu.Unlock()
	for _, n := range v.nodes {
		if err := n.ns.forgetConnectionsOf(c.IP(), c.IPv6()); err != nil {
			return c, err
		}
	}
	return c, l.plug(ns, name, host)
}

// Name is what the client was made as.
func (c *Client) Name() string { return c.name }

// IP is its address on the LAN.
func (c *Client) IP() string { return c.lan.subnet.addr4(c.host) }

// IPv6 is its other address, in a lab that has them.
func (c *Client) IPv6() string { return c.lan.subnet.addr6(c.host) }

// MAC is that of its interface on the LAN, eth0.
func (c *Client) MAC() string { return c.lan.subnet.mac(c.host) }

// Netns is the name of the namespace, for `ip netns exec`.
func (h Host) Netns() string { return h.ns.name }

// Response is an answer, read to its end.
type Response struct {
	Status  int
	Proto   string
	Header  http.Header
	Body    []byte
	TLS     *tls.ConnectionState
	Elapsed time.Duration
}

// Reply is the body of an answer that a pod of the lab wrote.
func (r Response) Reply() (reply podserver.Reply, err error) {
	if err = json.Unmarshal(r.Body, &reply); err != nil {
		err = fmt.Errorf("not from a pod of the lab: %d %q", r.Status, r.Body)
	}
	return reply, err
}

// RequestOption changes one request.
type RequestOption func(*request)

type request struct {
	http    *http.Request
	via     string
	tls     *tls.Config
	http2   bool
	timeout time.Duration
}

// Via connects to this address, IP:PORT, whatever the URL names: a name
// service is not part of the lab.
func Via(addr string) RequestOption { return func(r *request) { r.via = addr } }

// HostHeader sends another Host than the URL's.
func HostHeader(name string) RequestOption { return func(r *request) { r.http.Host = name } }

// Header adds a header field.
func Header(name, value string) RequestOption {
	return func(r *request) { r.http.Header.Add(name, value) }
}

// Method sends another method than GET, with a body.
func Method(method, body string) RequestOption {
	return func(r *request) {
		r.http.Method = method
		r.http.ContentLength = int64(len(body))
		r.http.Body = io.NopCloser(bytes.NewReader([]byte(body)))
	}
}

// TLS is how https is spoken; without it, no certificate is verified.
func TLS(config *tls.Config) RequestOption { return func(r *request) { r.tls = config } }

// HTTP2 negotiates HTTP/2 where https is spoken.
func HTTP2() RequestOption { return func(r *request) { r.http2 = true } }

// Timeout is for the whole exchange; the default is 5 s.
func Timeout(d time.Duration) RequestOption { return func(r *request) { r.timeout = d } }

// Try makes one request over a connection of its own and follows no redirect.
func (h Host) Try(url string, option ...RequestOption) (Response, error) {
	ctx := context.Background()
	if h.view.ctx != nil {
		ctx = h.view.ctx
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Response{}, err
	}
	r := request{http: req, timeout: 5 * time.Second, tls: &tls.Config{InsecureSkipVerify: true}}
	for _, o := range option {
		o(&r)
	}
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: r.tls, ForceAttemptHTTP2: r.http2,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if r.via != "" {
				addr = r.via
			}
			return h.ns.dial(ctx, network, addr)
		},
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	begin := time.Now()
	resp, err := transport.RoundTrip(r.http.WithContext(ctx))
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Response{
		Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header,
		Body: body, TLS: resp.TLS, Elapsed: time.Since(begin),
	}, err
}

// Get is Try that fails the test on an error. Any status is fine.
func (h Host) Get(url string, option ...RequestOption) Response {
	h.view.helper()
	r, err := h.Try(url, option...)
	h.view.must(err)
	return r
}

// Reply is Get for an answer of a pod: which one was it, and what did it see?
func (h Host) Reply(url string, option ...RequestOption) podserver.Reply {
	h.view.helper()
	reply, err := h.Get(url, option...).Reply()
	h.view.must(err)
	return reply
}

// Dial opens a connection from here. The address is numeric.
func (h Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return h.ns.dial(ctx, network, addr)
}

// ListenPacket opens a socket for datagrams here. The address is numeric.
func (h Host) ListenPacket(network, addr string) (conn net.PacketConn, err error) {
	err = h.ns.do(func() (err error) {
		conn, err = net.ListenPacket(network, addr)
		return err
	})
	return conn, err
}

// Transport makes an HTTP transport whose connections, kept alive, begin here.
func (h Host) Transport() *http.Transport { return h.ns.transport() }

// Start starts a command here, with whatever it has for input and output. It
// is not in the lab's PID namespace: whoever starts it also ends it.
func (h Host) Start(cmd *exec.Cmd) error { return h.ns.do(cmd.Start) }

// Exec runs a command here and returns what it printed.
func (h Host) Exec(argv ...string) string {
	h.view.helper()
	var out []byte
	h.view.must(h.ns.do(func() (err error) {
		if out, err = exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			err = fmt.Errorf("%v in %s: %w: %s", argv, h.ns.name, err, out)
		}
		return err
	}))
	return string(out)
}
