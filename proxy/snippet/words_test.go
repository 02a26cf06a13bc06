package snippet_test

import (
	"slices"
	"strings"
	"testing"

	"quayside.io/proxy/geoip"
	"quayside.io/proxy/snippet"
)

// TestOneWordLess: a snippet in which one word is missing, or there twice, is obeyed or refused,
// and nothing else happens.
func TestOneWordLess(t *testing.T) {
	corpus := []string{
		`set $a "$uri" ; if ( $a ~ ^/(?<b>.*)$ ) { rewrite ^/x /$b last ; add_header X-A $a always ; return 302 /to$a ; } break ;`,
		`location = /ask { internal ; set $g http://g.test ; proxy_pass $g/check ; proxy_method POST ; proxy_pass_request_body off ; proxy_set_header X-A $host ; } auth_request /ask ;`,
		`location ^~ /ask { internal ; proxy_pass http://g.test ; } auth_request /ask/x ; location /y { return 200 y ; }`,
		`location @x { add_header X-A b ; default_type text/plain ; return 403 no ; } error_page 404 405 = @x ; error_page 403 =200 /y ; proxy_intercept_errors on ;`,
		`auth_request_set $to $upstream_http_location ; auth_request_set $s $upstream_status ; auth_request_set $c $upstream_cookie_c ; error_page 401 =302 $to ;`,
		`location ~* ^/v1/(.*)$ { client_max_body_size 1g ; if ( $request_method ~* (POST|PUT) ) { rewrite ^/(.*)$ /in/$1 last ; } rewrite ^ /out last ; }`,
		`limit_req zone=z burst=5 nodelay ; limit_conn n 2 ; limit_req_status 429 ; limit_except GET POST { allow 10.0.0.0/8 ; deny all ; }`,
		`gzip on ; gzip_types text/css *; gzip_min_length 1k ; gzip_disable "msie 6" ; brotli on ; brotli_comp_level 4 ; sub_filter a b ; sub_filter_types * ; sub_filter_once off ;`,
		`more_set_headers -s "404 405" -t text/html "X-A: b" ; more_clear_headers X-* ; more_set_input_headers -r "X-B: $uri" ; expires -1h ; proxy_hide_header X-C ; add_header Set-Cookie $c ;`,
		`deny 10.0.0.1 ; allow 10.0.0.0/8 ; deny all ; access_log off ; proxy_cookie_path / "/; secure" ; proxy_cookie_flags a secure ; proxy_ssl_verify off ; set_escape_uri $escaped_request_uri $request_uri ;`,
		`map $http_x $m { hostnames ; default 0 ; *.a.test 1 ; ~*^b(.)$ "$1" ; '' $uri ; } geo $remote_addr $g { default 0 ; 10.0.0.0/8 1 ; } split_clients "$args" $p { 10% a ; * b ; }`,
		`location ^~ /api/ { set $to "http://a.b.svc:80" ; proxy_pass $to/v1 ; proxy_read_timeout 5m ; proxy_set_header Host $host ; proxy_redirect off ; rewrite ^/x /y last ; if ( $uri ) { return 403 ; } } location ~ \.js$ { proxy_pass http://a.b.svc ; }`,
		`limit_req_zone $binary_remote_addr zone=z:10m rate=10r/s sync ; limit_conn_zone $host zone=n:1m ; map_hash_max_size 10 ; server { listen 18080 ; return 404 ; }`,
		`geoip2 /x/GeoLite2-City.mmdb { auto_reload 5m ; $a default=b source=$remote_addr country iso_code ; $c location latitude ; } map $a $b { c d ; }`,
		`valid_referers none blocked server_names *.a.test b.* .c.test/d ~e ; if ( $invalid_referer ) { return 403 ; } location /x { valid_referers f.test ; return 200 $invalid_referer ; }`,
		`set_real_ip_from 10.0.0.0/8 ; set_real_ip_from unix: ; real_ip_header X-Forwarded-For ; real_ip_recursive on ; set $best_http_host $http_x ; server_name a.test _ ; keepalive_timeout 5s ; limit_rate 5k ;`,
		`access_by_lua_block { if ngx.var.a ~= "" then x end }`,
	}
	compile := func(words []string) {
		text := strings.Join(words, " ")
		for _, ofHost := range []bool{false, true} {
			known := &snippet.Known{}
			known.SetPlaces(geoip.Every())
			snippet.Tables(text, known)
			snippet.Declare(text, known)
			snippet.Script(text, ofHost, known)
		}
	}
	for _, text := range corpus {
		words := strings.Fields(text)
		compile(words)
		for i := range words {
			compile(slices.Delete(slices.Clone(words), i, i+1))
			compile(slices.Insert(slices.Clone(words), i, words[i]))
			for j := max(0, i-3); j < i; j++ { // and two
				compile(slices.Delete(slices.Delete(slices.Clone(words), i, i+1), j, j+1))
			}
		}
	}
}
