package filter

import "testing"

// TestUpstreamPaths: what a Service is asked for, and that all others see the request's path.
func TestUpstreamPaths(t *testing.T) {
	for _, c := range []struct {
		o            UpstreamPath
		broke        bool
		target, path string
		want         string // "": it is answered
	}{
		{UpstreamPath{Location: "/api/", To: "/v1/"}, false, "/api/x?y", "/api/x", "/v1/x?y"},
		{UpstreamPath{Location: "/api/", To: "/"}, false, "/api/a%20b?", "/api/a b", "/a%20b"},
		{UpstreamPath{Location: "/api", To: "/"}, false, "/api/x", "/api/x", "/x"},
		{UpstreamPath{Location: "/api", To: "/v1"}, false, "/api%2Fx", "/api%2Fx", "/v1/x"},
		{UpstreamPath{Location: "/api", To: "/"}, false, "/api//evil.test", "/api//evil.test", "/evil.test"},
		{UpstreamPath{Location: "/api/", To: "/v1/."}, false, "/api/./x", "/api/./x", ""},
		{UpstreamPath{Location: "/api/", To: "/v1/"}, true, "/moved?y", "/moved", "/moved?y"},
		{UpstreamPath{Location: "/\xff(", To: "/v1"}, false, "/x", "/x", "/x"},
		{UpstreamPath{Location: "/\xff(", To: "/v1"}, false, "/%FF(a", "/\xff(a", "/v1a"},
		{UpstreamPath{To: "/whole", Whole: true}, false, "/api/x?y", "/api/x", "/whole"},
		{UpstreamPath{Asked: true}, true, "/moved", "/moved", "/asked?of"},
	} {
		ex := ask("GET a.test " + c.target)
		ex.Request.Path, ex.Request.Asked.Target, ex.Script.Broke = []byte(c.path), []byte("/asked?of"), c.broke
		f := upstreamPath(&c.o)
		passes := f.Request(ex)
		if got := string(ex.Request.Target); passes != (c.want != "") || passes && got != c.want {
			t.Errorf("%+v of %s: %v, %s, want %s", c.o, c.target, passes, got, c.want)
		}
		if f.Upstream(ex); string(ex.Request.Target) != c.target {
			t.Errorf("%s is %s behind the backend", c.target, ex.Request.Target)
		}
	}
}
