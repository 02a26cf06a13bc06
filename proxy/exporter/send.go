package exporter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quayside.io/proxy/otlp"
)

const (
	// maxHead and maxAnswer are how much is read of an answer.
	maxHead   = 16 << 10
	maxAnswer = 64 << 10
	// prefix is what stands before a message of gRPC: whether it is compressed, and its
	// length.
	prefix = 5
)

// errUnavailable is that a collector could not be reached, or says that it cannot take
// anything now: another time it may.
var errUnavailable = errors.New("the collector is unavailable")

// rejected is that a collector took some spans of a batch only.
type rejected struct {
	spans int
	why   string
}

// Error implements error.
func (r *rejected) Error() string {
	return fmt.Sprintf("%d spans are rejected: %.200q", r.spans, r.why)
}

// transport returns one that speaks HTTP/2 without TLS, past all proxies.
func transport(o Options, l *lines) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		DialContext: l.dial, Protocols: protocols, DisableCompression: true, MaxResponseHeaderBytes: maxHead, IdleConnTimeout: 5 * time.Minute,
		HTTP2: &http.HTTP2Config{SendPingTimeout: o.Patience, PingTimeout: o.Patience, WriteByteTimeout: o.Patience, MaxReceiveBufferPerStream: maxAnswer},
	}
}

// send asks the collector to take a batch.
func (e *Exporter) send(ctx context.Context, b *batch) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Patience)
	defer cancel()
	err := e.ask(ctx, b)
	switch part := (*rejected)(nil); {
	case err == nil, errors.As(err, &part):
		return err
	}
	e.lines.cut() // another one may lead to somebody else
	if late := ctx.Err(); late != nil {
		return fmt.Errorf("no answer in %v: %w", e.options.Patience, late) // it may have taken them
	}
	return err
}

func (e *Exporter) ask(ctx context.Context, b *batch) error {
	c := e.collector.Load()
	if c.Address == "" {
		return errors.New("there is no collector any more")
	}
	// It is new each time, since net/http may read it after all is over.
	message := otlp.AppendRequest(make([]byte, prefix, prefix+len(b.spans)+512), otlp.Resource{Service: c.Service, Node: e.options.Node}, b.spans)
	binary.BigEndian.PutUint32(message[1:], uint32(len(message)-prefix))
	to := url.URL{Scheme: "http", Host: c.Address, Path: otlp.Method}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(message))
	if err != nil {
		return fmt.Errorf("the collector's address: %w", err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	r.Header.Set("User-Agent", "quayside")
	r.Header.Set("Grpc-Timeout", fmt.Sprintf("%dm", e.options.Patience.Milliseconds()))
	answer, err := e.http.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	defer answer.Body.Close()
	return read(answer)
}

// read judges an answer.
func read(answer *http.Response) error {
	switch kind := answer.Header.Get("Content-Type"); {
	case answer.StatusCode == 429, 502 <= answer.StatusCode && answer.StatusCode <= 504:
		return fmt.Errorf("%w: status %d", errUnavailable, answer.StatusCode)
	case answer.StatusCode != 200 || !strings.HasPrefix(kind, "application/grpc"):
		return fmt.Errorf("no answer of gRPC: status %d, %.50q", answer.StatusCode, kind)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUnavailable, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	says := answer.Trailer
	if answer.Header.Get("Grpc-Status") != "" {
		says = answer.Header // and nothing but that
	}
	switch status := says.Get("Grpc-Status"); status {
	case "0":
	case "14":
		return fmt.Errorf("%w: %.200q", errUnavailable, says.Get("Grpc-Message"))
	default:
		return fmt.Errorf("status %.10q of gRPC: %.200q", status, says.Get("Grpc-Message"))
	}
	if len(body) < prefix || body[0] != 0 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-prefix) {
		return errors.New("an answer without a message")
	}
	n, why, err := otlp.Rejected(body[prefix:])
	if err != nil {
		return err
	}
	if n > 0 {
		return &rejected{int(min(n, math.MaxInt32)), why}
	}
	return nil
}
