package upstream

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// reason is why there is no response; it is a label of the metrics.
type reason uint8

const (
	noEndpoint reason = iota
	overloaded
	connectFailed
	connectTimeout
	tlsFailed
	connectionLost
	sendTimeout
	readTimeout
	badResponse
	badUpgrade // to WebSocket, by a pod that may be good for everything else
	passedOn   // an answer that the route wants of another endpoint
	clientGone
	clientBody
	numReasons
)

func (r reason) String() string {
	return [numReasons]string{
		"no_endpoint", "overloaded", "connect_failed", "connect_timeout", "tls_failed", "connection_lost",
		"send_timeout", "read_timeout", "bad_response", "bad_upgrade", "passed_on", "client_gone", "client_body",
	}[r]
}

// status is what clients and logs are told of a failure; 0: it is not of an endpoint.
func (r reason) status() int {
	switch r {
	case noEndpoint, overloaded:
		return 503
	case connectTimeout, sendTimeout, readTimeout:
		return 504
	case clientGone, clientBody:
		return 0
	}
	return 502
}

// failure is why a transaction has no response.
type failure struct {
	reason   reason
	err      error
	endpoint *endpoint
	detail   string
	again    bool // the request may be sent on a fresh connection
	kept     bool // a connection died that had been kept, which says nothing of the endpoint
}

func (f *failure) Error() string {
	s := f.reason.String()
	if f.endpoint != nil {
		s += " " + f.endpoint.text
	}
	if f.err != nil {
		s += ": " + f.err.Error()
	}
	return s
}

func (f *failure) Unwrap() error { return f.err }

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// final is a failure after which there is no endpoint left to try.
type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// answer puts into the response what the client is told. It names the Service, if
// that is wanted, never an address inside the cluster; the log has both.
func (t *transaction) answer(err error) {
	f := &failure{reason: connectionLost, err: err}
	errors.As(err, &f)
	b := t.backend
	b.stats.count(f.reason)
	service, why := b.of.Called(), ""
	status, text := f.reason.status(), ""
	terse := t.engine.options.TerseErrors
	if terse {
		service, why = "the service", "no endpoint of the service is ready"
	}
	switch f.reason {
	case noEndpoint:
		if !terse {
			why, _, _ = strings.Cut(f.detail, " (")
		}
		text = "503 Service Unavailable: " + why
	case overloaded:
		text = "503 Service Unavailable: every endpoint of " + service + " has as many requests as it may have"
		if isOurs(f.err) {
			text = "503 Service Unavailable: there are as many connections to endpoints as there may be"
		}
	case connectFailed:
		text = "502 Bad Gateway: " + service + " refused the connection"
	case connectTimeout:
		text = "504 Gateway Timeout: " + service + " did not accept a connection in time"
	case tlsFailed:
		text = "502 Bad Gateway: the TLS handshake with " + service + " failed"
	case connectionLost:
		text = "502 Bad Gateway: " + service + " closed the connection before it answered"
	case sendTimeout:
		text = "504 Gateway Timeout: " + service + " did not read the request in time"
	case readTimeout:
		text = "504 Gateway Timeout: " + service + " did not answer in time"
	case badResponse:
		text = "502 Bad Gateway: " + service + " sent an invalid response"
		if !terse {
			text += ": " + f.err.Error()
		}
	case badUpgrade:
		text = "502 Bad Gateway: " + service + " does not speak WebSocket here"
		if !terse {
			text += ": " + f.err.Error()
		}
	case passedOn:
		text = "502 Bad Gateway: no endpoint of " + service + " answered otherwise than with an error"
	case clientGone:
		status = exchange.StatusClientGone
	case clientBody:
		status, text = exchange.BodyFault(f.err)
		text = strings.TrimSuffix(text, "\n")
	}
	level := slog.LevelDebug
	if terse && f.reason != clientGone && f.reason != clientBody && b.stats.worthALine(f.reason, time.Now()) {
		level = slog.LevelWarn // the only place that names the Service
	}
	t.engine.options.Log.Log(context.Background(), level, "a request could not be forwarded",
		"service", b.of.Service, "port", b.of.Port, "error", f, "detail", f.detail)
	t.ex.Answer(status, text+"\n")
	errors.As(f.err, &t.ex.Response.Reset)
	t.ex.Response.Close = f.reason == clientGone || f.reason == clientBody || (t.upload != nil || len(t.retired) > 0) && t.kept == nil
}
