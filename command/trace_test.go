package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"quayside.io/command/explain"
)

// The exit code is 0 only where every link is known to hold.
func TestTheExitCodeOfATrace(t *testing.T) {
	holds, breaks := explain.Link{Name: "address", State: explain.Works}, explain.Link{Name: "endpoints", State: explain.Broken}
	dark := explain.Link{Name: "announced", State: explain.Unknown}
	for _, c := range []struct {
		links []explain.Link
		code  int
		says  string
	}{
		{[]explain.Link{holds}, exitDone, "\nNothing on this path is broken.\n"},
		{[]explain.Link{holds, dark}, exitFailed, "\nNothing that could be looked at is broken; 1 link could not be looked at (\"announced\").\n"},
		{[]explain.Link{dark, holds, dark}, exitFailed, "2 links could not be looked at (\"announced\")"},
		{[]explain.Link{holds, breaks}, exitFailed, "\nThe first broken link is \"endpoints\".\n"},
		{[]explain.Link{dark, breaks}, exitFailed, "\nThe first broken link is \"endpoints\"; 1 link could not be looked at (\"announced\").\n"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(explain.Path{Target: "10.0.0.1", Links: c.links})
		}))
		var out terminalLess
		code := Run(t.Context(), "dev", []string{"quayside", "trace", "--admin", server.Listener.Addr().String(), "10.0.0.1"}, &out, &out)
		if code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: exit code %d, want %d with %q in\n%s", c.links, code, c.code, c.says, out.String())
		}
		server.Close()
	}
}

// What is found by asking for real is part of the verdict.
func TestATraceThatAsks(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer pod.Close()
	ends := []netip.AddrPort{netip.MustParseAddrPort(pod.Listener.Addr().String())}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(explain.Path{Target: "10.0.0.1", Links: []explain.Link{{Name: "address", State: explain.Works}}, Ends: ends})
	}))
	defer server.Close()
	trace := func() (int, string) {
		var out terminalLess
		code := Run(t.Context(), "dev", []string{"quayside", "trace", "--live", "--admin", server.Listener.Addr().String(), "http://localhost/"}, &out, &out)
		return code, out.String()
	}
	if code, said := trace(); code != exitDone || !strings.Contains(said, "answers 200 OK") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	pod.Close()
	if code, said := trace(); code != exitFailed || !strings.Contains(said, `The first broken link is "live connect".`) {
		t.Errorf("nobody listens: exit code %d\n%s", code, said)
	}
}
