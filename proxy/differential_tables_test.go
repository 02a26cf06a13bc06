package proxy_test

import "testing"

// TestTablesSameAsNginx gives tables of the ConfigMap's http-snippet to nginx, and snippets that
// have their variables.
func TestTablesSameAsNginx(t *testing.T) {
	const tables = `
map $http_x_key $owner { default ""; "key_A" "owner A"; 'Key b' 'it is $owner_of_b'; ~^re-(.*)-(\d+)$ "re $2 $1"; ~*^CASE "$http_x_key!"; "" none; }
map $host$request_uri $owner_of_b { default "$request_method"; }
map $host $kind { hostnames; default other; case-0.test first; *.test second; case-1.* third; .one.test fourth; ~^case-2 never; }
map $uri $path_type { ~*^/(explore|_next)/ explore; ~*^/EXPLORE$ explore2; ~^/api(/.*)?$ "api$1"; default default; }
map "$arg_a:$arg_b" $pair { "b:" ab; ":b" ba; "B:C" both; default "<$arg_a>"; }
geo $place { default far; 127.0.0.0/8 home; 127.0.0.2 never; 10.0.0.0/8 lan; ::1/128 loop; }
geo $arg_ip $of_ip { 192.0.2.0/24 "test net"; 192.0.2.128/25 half; 192.0.2.129 one; 2001:db8::/32 doc; }
split_clients "$arg_s" $part { 10% ten; 20.5% twenty; 33.33% third; * rest; }
split_clients "$arg_s" $all { 50% half; 50% other; }
map $status_of $answers { default 0; }
map $arg_code $status_of { default 200; ~^(4\d\d)$ $1; }
more_set_headers "X-All: $owner" "X-Kept: of all"; more_clear_headers X-User;
more_set_input_headers "X-Sent: $kind";
`
	requests := []string{"/x\nX-Key: key_A", "/x\nX-Key: KEY_a", "/x\nX-Key: key B", "/x\nX-Key: re-me-12", "/x\nX-Key: case here", "/explore/x", "/Explore", "/_next/", "/api/x?a=b", "/api?b=b", "/?a=b&b=c", "/?a=x",
		"/?ip=192.0.2.1", "/?ip=192.0.2.200", "/?ip=192.0.2.129", "/?ip=2001:db8::1", "/?ip=none", "/?code=404", "/?code=4040", "/?s=a", "/?s=bc", "/?s=def", "/?s=ghij", "/?s=klmno", "/?s=pqrstu", "/?s=0", "/?s=77", "/?s=x1", "/?s=x2", "/?s=x3", "/?s=x4"}
	const shows = `add_header X-Owner $owner; add_header X-Kind $kind; add_header X-Type $path_type; add_header X-Pair $pair; add_header X-Place $place; add_header X-Of-Ip "$of_ip"; add_header X-Part $part; add_header X-All $all; proxy_set_header X-Owner "$owner-$kind";`
	cases := []sameCase{
		scripted(shows, "", requests...),
		scripted(shows+`if ($owner = "") { return 401; } if ($pair = both) { return 302 /to/$kind; }`, "", requests...),
		scripted(`rewrite ^/api/(.*)$ /explore/$1 break; set $said "$path_type,$1"; if ($uri ~ ^/(.)) { set $then "$1$path_type"; } add_header X-Said "$said $then";`, "", requests...),
		scripted(`add_header X-Type $path_type; set $a $path_type;`, `if ($path_type = explore) { rewrite ^/explore/(.*)$ /api/$1; } if ($status_of = 404) { return 404; } if ($place != home) { return 403; }`, requests...),
	}
	for _, host := range []string{"", `more_set_headers "X-Kept: of the host";`} {
		cases = append(cases, scripted(`more_set_headers "X-All: own"; more_set_headers -s 404 "X-Kept: never";`, host, requests...))
	}
	cases[0].http = tables
	compareWithNginx(t, cases, "http-snippet", "map_hash_max_size 4096; map_hash_bucket_size 256;"+tables)
}
