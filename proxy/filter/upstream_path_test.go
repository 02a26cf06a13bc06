package filter

import "testing"

// TestUpstreamPaths: what a Service is asked for, and that all others see the request's path.
func TestUpstreamPaths(t *testing.T) {
	to := func(text string) *Target {
		target, err := ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
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
		{UpstreamPath{Location: "/api", To: "/serve?of="}, false, "/api/a%20b%3Fc?y", "/api/a b?c", "/serve?of=/a%20b%3Fc?y"},
		{UpstreamPath{Location: "/api", To: "/a%20b"}, false, "/api", "/api", "/a%20b"},
		{UpstreamPath{Location: "/api", To: "/serve?of="}, false, "/api/../x", "/api/../x", "/serve?of=/../x"},
		{UpstreamPath{Filled: to("/whole")}, false, "/api/x?y", "/api/x", "/whole"},
		{UpstreamPath{Filled: to("/$uri$is_args$args")}, true, "/api/a%0Ab?y=%20#", "/api/a\nb%25?c", "/api/a%0Ab%25%3Fc?y=%20%23"},
		{UpstreamPath{Filled: to("/v1$uri?of=$host&$args")}, false, "/x?y", "/x", "/v1/x?of=a.test&y"},
		{UpstreamPath{Filled: to("/$http_none$uri")}, false, "/evil.test", "/evil.test", "/evil.test"},
		{UpstreamPath{Filled: to("/.$arg_y/x")}, false, "/x?y=.", "/x", ""},
		{UpstreamPath{Filled: to("/v1$request_uri")}, false, "/moved", "/moved", "/v1/asked?of"},
		{UpstreamPath{Asked: true}, true, "/moved", "/moved", "/asked?of"},
	} {
		ex := ask("GET a.test " + c.target)
		ex.Request.Path, ex.Request.Asked.Target, ex.Script.Broke = []byte(c.path), []byte("/asked?of"), c.broke
		f := upstreamPath(&c.o, Place{})
		passes := f.Request(ex)
		if got := string(ex.Request.Target); passes != (c.want != "") || passes && got != c.want {
			t.Errorf("%+v of %s: %v, %s, want %s", c.o, c.target, passes, got, c.want)
		}
		if f.Upstream(ex); string(ex.Request.Target) != c.target {
			t.Errorf("%s is %s behind the backend", c.target, ex.Request.Target)
		}
	}
}
