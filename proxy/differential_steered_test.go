package proxy_test

import "testing"

// TestSteeredSameAsNginx has backends lead to other paths by X-Accel-Redirect, and say what
// else steers nginx, before hosts that have a location which is there for nobody else.
func TestSteeredSameAsNginx(t *testing.T) {
	const files = `location /files/ { internal; proxy_pass http://new.default.svc/; proxy_set_header Host $http_host; FIELDS add_header X-Files "$uri $args $arg_a" always; }`
	requests := []string{
		"/x?a=b",
		"/files/a",
		"/x?a=b\nX-Steer: /x X-Accel-Redirect=/files/a",
		"/x?a=b\nX-Steer: /x X-Accel-Redirect=/files/a?c=d X-Accel-Buffering=no X-Accel-Limit-Rate=1000000 X-Accel-Expires=5",
		"/x\nX-Steer: /x X-Accel-Buffering=no X-Accel-Limit-Rate=no X-Accel-Expires=5 x-accel-buffering=yes X-Accel-Other=yes",
		"/x\nX-Steer: /x X-Accel-Redirect=/files/a%20b/c X-Own=lost Set-Cookie=a=b Content-Disposition=attachment Cache-Control=no-store Expires=0 Accept-Ranges=bytes ETag=\"e\" Content-Type=image/png Vary=X Last-Modified=never",
		"/x\nX-Steer: /x X-Accel-Redirect=/page Set-Cookie=a=b Content-Type=image/png Cache-Control=no-store",
		"/x\nX-Steer: /x X-Accel-Redirect=/page Set-Cookie=a=b; /new X-Accel-Redirect=/docs Set-Cookie=c=d",
		"/x\nX-Steer: /x X-Accel-Redirect=/docs Set-Cookie=a=b; /docs X-Accel-Redirect=/files/a Set-Cookie=c=d; /a Set-Cookie=e=f",
		"/x\nX-Steer: /x X-Accel-Redirect=/x",
		"/x\nX-Steer: /x X-Accel-Redirect=/docs; /docs X-Accel-Redirect=/x",
		"/x\nX-Steer: /x X-Accel-Redirect=/files/../docs",
		"/x\nX-Steer: /x X-Accel-Redirect=/files/%2e%2E/docs",
		"/x\nX-Steer: /x X-Accel-Redirect=/files/..a?/../b",
		"/x\nX-Steer: /x X-Accel-Redirect=/status/404",
		"/status/404\nX-Steer: /status/404 X-Accel-Redirect=/files/a",
		"/status/302\nX-Steer: /status/302 X-Accel-Redirect=/files/status/201",
		"/status/204\nX-Steer: /status/204 X-Accel-Redirect=/files/a",
		"HEAD /x\nX-Steer: /x X-Accel-Redirect=/files/a",
		"DELETE /x?a=b\nX-Steer: /x X-Accel-Redirect=/docs",
		"DELETE /x\nX-Steer: /x X-Accel-Redirect=/files/a",
	}
	var cases []sameCase
	for _, c := range [][2]string{
		{``, files},
		{`add_header X-Place "$uri" always; proxy_set_header X-Sent "$uri $request_method";`, files + ` location = /page { internal; return 200 page; }`},
		{`rewrite ^/x$ /x break;`, files + ` rewrite ^/docs$ /x break; add_header X-Host yes always;`},
		{`proxy_intercept_errors on; error_page 404 302 =418 @no;`, files + ` location @no { return 403 "no"; }`},
	} {
		cases = append(cases, passing(c[0], c[1], requests...))
	}
	cases = append(cases, passing("", files, requests...).rewriting("/(.*)", "/$1"))
	if asked := compareWithNginx(t, cases); asked < 100 {
		t.Errorf("%d requests", asked)
	}
}
