package dispatch

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"quayside.io/proxy/exchange"
)

// A response goes as fast as its route says, or its backend, whoever reads it and in which
// pieces.
func TestPace(t *testing.T) {
	slow := &exchange.Forwarding{Rate: 1 << 10}
	for _, k := range []struct {
		route      *exchange.Forwarding
		said, size int64
		piece      int
		took       time.Duration
	}{
		{slow, -1, 1 << 10, 4096, 0},
		{slow, -1, 3 << 10, 4096, 2 * time.Second},
		{slow, -1, 3 << 10, 1, 2 * time.Second},
		{&exchange.Forwarding{Rate: 1 << 10, RateAfter: 8 << 10}, -1, 10 << 10, 512, time.Second},
		{&exchange.Forwarding{Rate: 1 << 30}, -1, 1 << 20, 4096, 0},
		{nil, -1, 1 << 20, 4096, 0},
		{nil, 1 << 10, 3 << 10, 4096, 2 * time.Second},
		{slow, 1 << 9, 2 << 10, 4096, 3 * time.Second},
		{slow, 0, 1 << 20, 4096, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ex exchange.Exchange
			ex.Response.Body = io.NopCloser(bytes.NewReader(make([]byte, k.size)))
			pace(&ex, k.route, k.said)
			began, total, buf := time.Now(), int64(0), make([]byte, k.piece)
			for {
				n, err := ex.Response.Body.Read(buf)
				if total += int64(n); err != nil {
					break
				}
			}
			if took := time.Since(began); total != k.size || took < k.took || took > k.took+time.Second/8 {
				t.Errorf("%+v: %d bytes in %v", k, total, took)
			}
		})
	}
}
