package balance

import (
	"testing"

	"quayside.io/proxy/exchange"
)

// A key is made of what the client sent, whatever rewrite-target and upstream-vhost have
// made of it: with a constant rewrite, one endpoint would take every request.
func TestHashOfWhatWasAsked(t *testing.T) {
	for _, expression := range []string{"$request_uri", "$host"} {
		key, err := ParseHashKey(expression)
		if err != nil {
			t.Fatal(err)
		}
		hash := func(host, target string, rewritten bool) uint64 {
			r := &exchange.Request{Host: []byte(host), Target: []byte(target)}
			r.Asked.Host, r.Asked.Target = r.Host, r.Target
			if rewritten {
				r.Host, r.Target = []byte("inner"), []byte("/index.php")
			}
			h, some := key.Hash(r)
			if !some {
				t.Errorf("%s: nothing is hashed", expression)
			}
			return h
		}
		if hash("a", "/a", true) == hash("b", "/b", true) {
			t.Errorf("%s: what is rewritten to the same has the same hash", expression)
		}
		if hash("a", "/a", true) != hash("a", "/a", false) {
			t.Errorf("%s: a rewrite changes the hash", expression)
		}
	}
}
