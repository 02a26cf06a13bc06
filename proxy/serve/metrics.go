package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns the metrics of s. Those of requests are the handler's.
func (s *Server) Collector() prometheus.Collector {
	return &collector{
		server:      s,
		connections: prometheus.NewDesc("quayside_http_connections", "Open connections of clients.", nil, nil),
		limit:       prometheus.NewDesc("quayside_http_connections_limit", "How many connections clients may have at once.", nil, nil),
		refused:     prometheus.NewDesc("quayside_http_connections_refused_total", "Connections of clients that were closed at once, since there were as many as there may be.", nil, nil),
		spared:      prometheus.NewDesc("quayside_http_connections_spared_total", "Connections without a request that were ended for the sake of new ones, since few were left.", nil, nil),
		failures: prometheus.NewDesc("quayside_tls_handshake_failures_total",
			"TLS handshakes of clients that came to nothing, by reason: silent (closed before a byte, as probes do), gone, timeout, refused (the client sent an alert: it does not trust the certificate, say), "+
				"not_tls, version, cipher, protocol (nothing in common), certificate (none for the name), undecrypted (for a name whose connections are handed on), other.",
			[]string{"reason"}, nil),
	}
}

type collector struct {
	server                                        *Server
	connections, limit, refused, spared, failures *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connections, c.limit, c.refused, c.spared, c.failures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(c.server.Connections()))
	ch <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(c.server.limits.Load().Connections))
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(c.server.refused.Load()))
	ch <- prometheus.MustNewConstMetric(c.spared, prometheus.CounterValue, float64(c.server.spared.Load()))
	for i, reason := range handshakeReasons() {
		ch <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(c.server.handshakes[i].Load()), reason)
	}
}

// Why a handshake came to nothing, as indices of handshakeReasons.
const (
	clientSilent = iota
	clientGone
	handshakeTimeout
	clientRefused
	notTLS
	noCommonVersion
	noCommonCipher
	noCommonProtocol
	noCertificate
	notDecrypted
	otherReason
	numReasons
)

func handshakeReasons() [numReasons]string {
	return [...]string{"silent", "gone", "timeout", "refused", "not_tls", "version", "cipher", "protocol", "certificate", "undecrypted", "other"}
}

// failures counts handshakes that came to nothing, by reason.
type failures [numReasons]atomic.Uint64

// count counts one; heard says that the client had sent something.
func (f *failures) count(err error, heard bool) { f[reasonOf(err, heard)].Add(1) }

// reasonOf finds out why. What crypto/tls has no type of error for it has a text for.
func reasonOf(err error, heard bool) int {
	var not tls.RecordHeaderError
	var operation *net.OpError
	switch {
	case errors.Is(err, errUndecrypted):
		return notDecrypted
	case errors.As(err, &not):
		return notTLS
	case errors.Is(err, os.ErrDeadlineExceeded):
		return handshakeTimeout
	case errors.As(err, &operation) && operation.Op == "remote error":
		return clientRefused
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		if !heard {
			return clientSilent
		}
		return clientGone
	}
	for text, reason := range map[string]int{
		"unsupported versions": noCommonVersion, "no cipher suite": noCommonCipher, "signature algorithms": noCommonCipher, "no ECDHE": noCommonCipher,
		"key exchange": noCommonCipher, "unsupported application protocols": noCommonProtocol, "no certificates configured": noCertificate,
	} {
		if strings.Contains(err.Error(), text) {
			return reason
		}
	}
	return otherReason
}
