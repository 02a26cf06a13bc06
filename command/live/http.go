package live

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"quayside.io/cluster/printable"
	"quayside.io/command/explain"
)

// maxBody is how much of an answer is read.
const maxBody = 64 << 10

// request asks for u over a connection.
func (l *looker) request(ctx context.Context, conn net.Conn, u *url.URL, at netip.AddrPort) {
	if u.Scheme == "https" {
		over, ok := l.handshake(ctx, conn, u.Hostname(), at)
		if !ok {
			return
		}
		conn = over
	}
	const link = "live http"
	ctx, enough := context.WithTimeout(ctx, l.limits.Answer)
	defer enough()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		l.say(link, explain.Unknown, "%v", err)
		return
	}
	req.Header.Set("User-Agent", "quayside-trace")
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	transport := &http.Transport{DialContext: dial, DialTLSContext: dial, DisableKeepAlives: true, DisableCompression: true}
	begin := time.Now()
	resp, err := transport.RoundTrip(req) // which follows nothing
	took := time.Since(begin)
	if err != nil {
		l.say(link, explain.Broken, "%s: %s", at, l.unanswered(ctx, err))
		return
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	resp.Body.Close()
	says := fmt.Sprintf("%s answers %s in %s", at, resp.Status, round(took))
	if server := resp.Header.Get("Server"); server != "" {
		says += ", Server: " + server
	}
	if to := resp.Header.Get("Location"); to != "" {
		says += ", Location: " + to + ", which is not followed"
	}
	switch {
	case err != nil:
		l.say(link, explain.Broken, "%s; its body breaks off: %v", says, err)
	case resp.StatusCode >= http.StatusInternalServerError:
		l.say(link, explain.Broken, "%s%s", says, l.reason(resp, string(body)))
	default:
		l.say(link, explain.Works, "%s", says)
	}
}

// maxReason is how much of a reason is shown.
const maxReason = 300

// reason is what an answer itself says of why it is none, as our proxy does in a line of
// plain text that begins with the status, and what is to be done about it where that is
// known. It is for what no object tells: how the pods behave.
// By default the proxy tells strangers of no Service; the path names it.
func (l *looker) reason(resp *http.Response, body string) string {
	line, _, _ := strings.Cut(body, "\n")
	why, told := strings.CutPrefix(line, resp.Status+": ")
	if !told || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		return ""
	}
	if l.backend != "" {
		why = strings.Replace(why, "the service", "Service "+l.backend, 1)
	}
	says := ": " + printable.Cut(printable.Line(why), maxReason)
	switch {
	case strings.HasPrefix(why, "the TLS handshake with "):
		says += "; its pods do not serve TLS there, or not as it is asked for: let them, or correct the annotation backend-protocol"
	case strings.HasSuffix(why, " refused the connection"):
		says += "; let its pods listen on the targetPort of the Service, on the pod's address, or correct that port"
	case strings.HasSuffix(why, " did not accept a connection in time"):
		says += "; something drops what the proxies send: see that no policy of the network, of whatever kind, keeps them from its pods, and that nodes reach each other's pods"
	}
	return says
}

// unanswered says why a request was not answered.
func (l *looker) unanswered(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("no answer within %s", l.limits.Answer)
	}
	return err.Error()
}

// handshake looks at the certificate that is served for a host.
func (l *looker) handshake(ctx context.Context, conn net.Conn, host string, at netip.AddrPort) (over *tls.Conn, ok bool) {
	const link = "live tls"
	ctx, enough := context.WithTimeout(ctx, l.limits.Connect)
	defer enough()
	// What is served is to be seen, also where it is not what it should be.
	over = tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	begin := time.Now()
	if err := over.HandshakeContext(ctx); err != nil {
		l.say(link, explain.Broken, "%s: the handshake for %s fails: %s", at, host, l.why(err))
		return nil, false
	}
	took := time.Since(begin)
	state := over.ConnectionState()
	leaf := state.PeerCertificates[0]
	says := fmt.Sprintf("%s serves a certificate for %s until %s, %s in %s", at, holders(leaf),
		leaf.NotAfter.UTC().Format("2006-01-02 15:04 MST"), tls.VersionName(state.Version), round(took))
	switch now, err := time.Now(), leaf.VerifyHostname(host); {
	case err != nil:
		l.say(link, explain.Broken, "%s: it does not cover %s", says, host)
	case now.After(leaf.NotAfter):
		l.say(link, explain.Broken, "%s: it has expired", says)
	case now.Before(leaf.NotBefore):
		l.say(link, explain.Broken, "%s: it is valid from %s only", says, leaf.NotBefore.UTC().Format("2006-01-02 15:04 MST"))
	default:
		l.say(link, explain.Works, "%s%s", says, distrust(state.PeerCertificates))
	}
	return over, true
}

// holders are the names that a certificate is for.
func holders(leaf *x509.Certificate) string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no name"
	case len(names) > 3:
		return fmt.Sprintf("%s, … %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// distrust says that this machine does not trust a chain, which may well be meant.
func distrust(chain []*x509.Certificate) string {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Intermediates: between}); err != nil {
		return fmt.Sprintf("; this machine does not trust who signed it (%s)", chain[0].Issuer)
	}
	return ""
}
