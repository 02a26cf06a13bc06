package dispatch

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"quayside.io/proxy/exchange"
)

// A response goes as fast as its route says, whoever reads it and in which pieces.
func TestPace(t *testing.T) {
	for _, k := range []struct {
		rate, after, size int64
		piece             int
		took              time.Duration
	}{
		{1 << 10, 0, 1 << 10, 4096, 0},
		{1 << 10, 0, 3 << 10, 4096, 2 * time.Second},
		{1 << 10, 0, 3 << 10, 1, 2 * time.Second},
		{1 << 10, 8 << 10, 10 << 10, 512, time.Second},
		{1 << 30, 0, 1 << 20, 4096, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ex exchange.Exchange
			ex.Response.Body = io.NopCloser(bytes.NewReader(make([]byte, k.size)))
			pace(&ex, &exchange.Forwarding{Rate: k.rate, RateAfter: k.after})
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
