package proxy_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDrawnCompressionSameAsNginx draws what a backend says of its body and what a client takes,
// with three settings of compression.
//
// Not drawn is where this proxy does otherwise on purpose: media types with parameters other than
// charset, which nginx does not find among its types; what says that it must not be changed, or
// what its bytes are (no-transform, digests); clients that like identity better, or take
// anything; and bodies shorter than gzip-min-length whose length nobody said, which nginx cannot
// know and this proxy often does.
func TestDrawnCompressionSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := compressionDrawer{parts}
	for _, pairs := range [][]string{
		{"use-gzip", "true", "gzip-min-length", "1"},
		{"use-gzip", "true"},
		{"use-gzip", "true", "gzip-types", "text/plain application/json TEXT/css", "gzip-min-length", "3000", "gzip-level", "6", "gzip-disable", "Old|^$"},
		{"use-gzip", "true", "gzip-types", "*", "gzip-min-length", "1000"},
	} {
		c := sameCase{with: map[string]string{}, inside: compressing(pairs)}
		for range count * 5 {
			request := draw.request()
			if pairs[len(pairs)-1] != "1" {
				request = strings.Replace(request, "/flush\n", "\n", 1)
			}
			c.requests = append(c.requests, request)
		}
		compareWithNginx(t, []sameCase{c}, pairs...)
	}
}

// compressing are the directives that ingress-nginx makes of options.
func compressing(pairs []string) string {
	said := map[string]string{"gzip-level": "1", "gzip-min-length": "256", "gzip-types": "application/atom+xml application/javascript application/x-javascript application/json application/rss+xml " +
		"application/vnd.ms-fontobject application/x-font-ttf application/x-web-app-manifest+json application/xhtml+xml application/xml font/opentype image/svg+xml image/x-icon text/css text/javascript text/plain text/x-component"}
	for i := 0; i < len(pairs); i += 2 {
		said[pairs[i]] = pairs[i+1]
	}
	text := fmt.Sprintf("gzip on; gzip_comp_level %s; gzip_http_version 1.1; gzip_min_length %s; gzip_types %s; gzip_proxied any; gzip_vary on;", said["gzip-level"], said["gzip-min-length"], said["gzip-types"])
	if disable := said["gzip-disable"]; disable != "" {
		text += fmt.Sprintf("gzip_disable %q;", disable)
	}
	return text
}

// compressionDrawer draws what decides about compression.
type compressionDrawer struct{ snippetDrawer }

func (d compressionDrawer) request() string {
	text := d.of("GET ", "GET ", "GET ", "HEAD ", "POST ") + d.of("/x", "/x", "/status/200", "/status/404", "/status/403", "/status/500", "/status/201", "/status/204", "/status/304", "/status/206") + d.of("", "/flush")
	lines := []string{"X-Says: " + d.said(), "Accept-Encoding: " + d.accept()}
	if d.IntN(3) == 0 {
		lines = append(lines, "User-Agent: "+d.of("Old/4.0", "Mozilla", "older", "An Old one"))
	}
	if d.IntN(4) == 0 {
		lines = append(lines, d.of("Range: bytes=0-5", "If-None-Match: \"tag\"", "Via: 1.1 cache", "TE: trailers"))
	}
	if d.IntN(2) == 0 {
		lines = append(lines, "X-Long: "+strings.Repeat("much the same, ", d.IntN(450))+"and so on")
	}
	return text + "\n" + strings.Join(lines, "\n")
}

func (d compressionDrawer) accept() string {
	members := []string{d.of("gzip", "GZIP", "gzip;q=0", "gzip; q=0.0", "gzip;q=0.5", "gzip ;q=1", "gzip;q=0.001", "gzip;q=1.000", "gzipped", "ungzip")}
	for range d.IntN(3) {
		members = append(members, d.of("br", "deflate", "zstd;q=0.9", "compress;q=0"))
	}
	d.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return strings.Join(members, d.of(", ", ",", " , "))
}

// said draws the fields that a backend says, as X-Says has them.
func (d compressionDrawer) said() string {
	lines := []string{"X-Said:yes"}
	if d.IntN(10) > 0 {
		lines = append(lines, "Content-Type:"+d.of("text/html", "text/html; charset=utf-8", "TEXT/HTML", "text/plain", "Text/Plain;charset=latin1", "application/json", "application/json; charset=utf-8", "text/css", "image/png", "image/svg+xml", "application/octet-stream", "text/event-stream", "text", "text/htm"))
	}
	lines = append(lines, d.some(3,
		[]string{"ETag:\"tag\"", "ETag:W/\"tag\"", "ETag:tag", "ETag:\"\""},
		[]string{"Vary:Cookie", "Vary:accept-encoding", "Vary:*", "Vary:Origin, Accept-Encoding"},
		[]string{"Accept-Ranges:bytes", "Accept-Ranges:none"},
		[]string{"Last-Modified:Wed, 01 Jan 2020 00:00:00 GMT"},
		[]string{"Cache-Control:no-store", "Cache-Control:max-age=3"})...)
	if d.IntN(8) == 0 {
		lines = append(lines, "Content-Encoding:"+d.of("br", "gzip", "identity", "aes128gcm"))
	}
	return strings.Join(lines, "|")
}
