package filter

import (
	"io"
	"math"
	"strings"
	"testing"

	"quayside.io/proxy/exchange"
)

// The largest limit there is does not overflow.
func TestLargestBodyLimit(t *testing.T) {
	ex := &exchange.Exchange{}
	ex.Request.Body, ex.Request.Length = io.NopCloser(strings.NewReader("body")), -1
	if !maxBody(math.MaxInt64).Request(ex) {
		t.Fatal(ex.Response.Status)
	}
	if got, err := io.ReadAll(ex.Request.Body); string(got) != "body" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}
