package route

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy/exchange"
)

// maxSeconds bounds what an annotation may ask for: ten years. Who has WebSockets asks for
// weeks.
const maxSeconds = 10 * 366 * 24 * 60 * 60

// timeout reads a timeout of nginx: whole seconds, at least so many, with or without their unit.
func timeout(least int) func(string) (time.Duration, error) {
	return func(value string) (time.Duration, error) {
		n, err := strconv.Atoi(strings.TrimSuffix(value, "s"))
		if err != nil || n < least || n > maxSeconds {
			return 0, fmt.Errorf("%q is no number of seconds from %d to %d", value, least, maxSeconds)
		}
		return time.Duration(n) * time.Second, nil
	}
}

func parseConnectTimeout(s *settings, value string) error {
	return set(&s.forwarding.ConnectTimeout, value, timeout(1))
}

func parseReadTimeout(s *settings, value string) error {
	return set(&s.forwarding.ReadTimeout, value, timeout(1))
}

func parseSendTimeout(s *settings, value string) error {
	return set(&s.forwarding.SendTimeout, value, timeout(1))
}

func parseTriesTimeout(s *settings, value string) error {
	return set(&s.forwarding.TriesTimeout, value, timeout(0))
}

// manyTries stands for no bound: more endpoints than anybody has.
const manyTries = 1 << 20

func parseTries(s *settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > manyTries {
		return fmt.Errorf("%q is no number of tries", value)
	}
	if n == 0 {
		n = manyTries
	}
	s.forwarding.Tries = n
	return nil
}

// parseNext reads the reasons of proxy_next_upstream. "off" excludes all others.
func parseNext(s *settings, value string) error {
	reasons := map[string]exchange.Next{
		"error": exchange.NextError, "timeout": exchange.NextTimeout, "invalid_header": exchange.NextInvalid,
		"http_403": exchange.Next403, "http_404": exchange.Next404, "http_429": exchange.Next429, "http_500": exchange.Next500,
		"http_502": exchange.Next502, "http_503": exchange.Next503, "http_504": exchange.Next504,
		"non_idempotent": exchange.NextNonIdempotent, "off": exchange.NextOff,
	}
	var next exchange.Next
	for _, word := range strings.Fields(value) {
		reason, ok := reasons[word]
		if !ok {
			return fmt.Errorf("%q is no reason to ask another endpoint", word)
		}
		next |= reason
	}
	if next&exchange.NextOff != 0 {
		next = exchange.NextOff
	}
	s.forwarding.Next = next
	return nil
}

// parseRate reads a number of KiB, up to a TiB.
func parseRate(of func(*exchange.Forwarding) *int64) func(s *settings, value string) error {
	return func(s *settings, value string) error { return set(of(&s.forwarding), value, parseKiB) }
}

// parseKiB reads a number of KiB as one of bytes.
func parseKiB(value string) (int64, error) {
	n, err := parseCount(value, 1<<30)
	return int64(n) << 10, err
}

// maxHead is the largest head of a response that is taken, see upstream.Options.
const maxHead = 256 << 10

func parseHeadSize(_ *settings, value string) error {
	n, err := parseBytes(value)
	if err == nil && n > maxHead {
		err = fmt.Errorf("%q is more than the 256k that are taken", value)
	}
	return err
}

func parseGather(s *settings, value string) error {
	return set(&s.forwarding.Gather, value, parseSwitch)
}

func parseGatherMemory(s *settings, value string) error {
	n, err := parseBytes(value)
	if err == nil {
		s.forwarding.GatherMemory = max(n, 1) // 0 asks for files at once
	}
	return err
}

func parseHTTPVersion(s *settings, value string) error {
	if value != "1.0" && value != "1.1" {
		return fmt.Errorf("%q is neither 1.0 nor 1.1", value)
	}
	s.forwarding.HTTP10 = value == "1.0"
	return nil
}

// parseConnection reads the Connection field of requests to the backend, which is
// ours to write; but one that leaves Upgrade out refuses upgrades.
func parseConnection(s *settings, value string) error {
	switch strings.ToLower(value) {
	case "keep-alive":
		s.filters.NoUpgrade = true
	case "upgrade", "$connection_upgrade":
		s.filters.NoUpgrade = false
	default:
		return fmt.Errorf("%q is neither keep-alive nor upgrade", value)
	}
	return nil
}

// forwardingOf returns what routes are given, nil for nothing.
func (s *settings) forwardingOf() *exchange.Forwarding {
	switch {
	case s.forwarding == (exchange.Forwarding{}):
		return nil
	case s.usual != nil && *s.usual == s.forwarding:
		return s.usual
	}
	f := s.forwarding
	return &f
}

// protocol is how an Ingress says that endpoints are spoken to.
type protocol struct {
	said  bool // it does; else the port of the Service may
	http2 bool
	grpc  bool // over it
}

// appProtocolH2C is the appProtocol of a Service's port (KEP-3726) whose endpoints
// speak HTTP/2 without TLS, which clients know beforehand.
const appProtocolH2C = "kubernetes.io/h2c"

// of returns whether the endpoints of a port are spoken to over HTTP/2.
func (p protocol) of(port corev1.ServicePort) bool {
	if p.said {
		return p.http2
	}
	return port.AppProtocol != nil && *port.AppProtocol == appProtocolH2C
}

// parseProtocol reads how endpoints are spoken to.
func parseProtocol(s *settings, value string) error {
	value = strings.ToUpper(value)
	switch value {
	case "HTTP":
	case "HTTPS", "GRPCS":
		s.upstream.On = true
	case "GRPC", "H2C":
	default:
		return fmt.Errorf("%q is not spoken to backends, only HTTP, HTTPS, GRPC, GRPCS and H2C are", value)
	}
	s.protocol = protocol{said: true, http2: value != "HTTP" && value != "HTTPS", grpc: strings.HasPrefix(value, "GRPC")}
	return nil
}

// parseSwitch reads a switch of nginx, which ingress-nginx passes on as it is.
func parseSwitch(value string) (bool, error) {
	switch value {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return parseBool(value)
}

func parseUpstreamVerify(s *settings, value string) error {
	return set(&s.upstream.Verify, value, parseSwitch)
}

func parseUpstreamProtocols(s *settings, value string) error {
	least, most, err := tlsVersions(value)
	if err == nil {
		s.upstream.MinVersion, s.upstream.MaxVersion = least, most
	}
	return err
}

func parseUpstreamCiphers(s *settings, value string) error {
	_, err := Ciphers(value)
	if err == nil {
		s.upstream.Ciphers = value
	}
	return err
}

func parseUpstreamDepth(s *settings, value string) error {
	err := set(&s.upstream.MaxDepth, value, count(100))
	s.upstream.LimitDepth = s.upstream.LimitDepth || err == nil
	return err
}

func parseUpstreamSNI(s *settings, value string) error {
	return set(&s.upstream.SendName, value, parseSwitch)
}

func parseUpstreamName(s *settings, value string) error {
	if value == hostsName || value == "$server_name" {
		s.upstream.Name = hostsName
		return nil
	}
	if why := invalidHost(value); why != "" || strings.HasPrefix(value, "*") {
		return fmt.Errorf("%q is no DNS name in lower case, nor %s", value, hostsName)
	}
	s.upstream.Name = value
	return nil
}

// parseUpstreamSecret names the Secret; finishUpstream looks for it.
func parseUpstreamSecret(s *settings, value string) error {
	s.upstreamSecret = value
	return nil
}

// finishUpstream closes a route that is to verify its endpoints by authorities, or
// to show them a certificate, that it may not have.
func (s *settings) finishUpstream(r refs) *finding {
	if s.forwarding.HTTP10 {
		s.filters.NoUpgrade = true
	}
	if !s.upstream.On {
		s.upstream = UpstreamTLS{} // the other keys say nothing without TLS
		return nil
	}
	if s.upstreamSecret == "" {
		return nil
	}
	secret, err := r.secret(s.upstreamSecret)
	if err != nil {
		f := s.closeFor("proxy-ssl-secret", "says whom to trust and ", err)
		return &f
	}
	s.upstream.Secret.Namespace, s.upstream.Secret.Name = secret.Namespace, secret.Name
	return nil
}
