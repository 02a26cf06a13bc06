package snippet_test

import (
	"fmt"
	"strings"
	"testing"

	"quayside.io/proxy/snippet"
)

// TestSkipped: what a snippet can do without is left out and told, and the rest is obeyed. What
// may decide who passes never is.
func TestSkipped(t *testing.T) {
	for text, want := range map[string]string{
		"large_client_header_buffers 4 16k;":            "for all hosts: large-client-header-buffers",
		"large_client_header_buffers 4;":                "for all hosts: large-client-header-buffers",
		"large_client_header_buffers 9999999999 1;":     "for all hosts: large-client-header-buffers",
		"large_client_header_buffers -1 1k;":            "for all hosts: large-client-header-buffers",
		"keepalive_timeout 600s;":                       "for all hosts: keep-alive",
		"keepalive_requests 10;":                        "for all hosts: keep-alive-requests",
		"client_body_timeout 10m;":                      "for all hosts: client-body-timeout",
		"client_header_timeout 10m;":                    "for all hosts: client-header-timeout",
		"ssl_protocols TLSv1.3;":                        "for all hosts: ssl-protocols",
		"proxy_cache static; proxy_cache_valid 200 1m;": "nothing is kept here",
	} {
		for _, ofHost := range []bool{false, true} {
			made, err := snippet.Script("add_header X-A a;\n"+text, ofHost, &snippet.Known{})
			if err != nil || len(made.Skipped) != 1 || !strings.Contains(made.Skipped[0].Error(), want) || !strings.HasPrefix(made.Skipped[0].Error(), "line 2, ") || len(made.Script.Fields) != 1 {
				t.Errorf("%s: %+v, %v, want %q", text, made, err, want)
			}
		}
	}
	for _, text := range []string{"real_ip_header X-A;", "set_real_ip_from 0.0.0.0/0; deny 10.0.0.1;", "set_real_ip_from 10.0.0.0/8;", "auth_basic x;", "ignore_invalid_headers off;", "limit_rate 1;"} {
		if made, err := snippet.Script("add_header X-A a;\n"+text, true, &snippet.Known{}); err == nil {
			t.Errorf("%s: %+v", text, made)
		}
	}
}

// TestRealIP: half of what says who the client is says nothing, and what the proxy sends itself
// cannot be what a client says.
func TestRealIP(t *testing.T) {
	for text, want := range map[string]string{
		"set_real_ip_from 10.0.0.0/8; set_real_ip_from 192.0.2.1; set_real_ip_from unix:; real_ip_header CF-Connecting-IP; real_ip_recursive on;": "{CF-Connecting-IP [10.0.0.0/8 192.0.2.1/32] true}",
		"real_ip_header X-Forwarded-For; set_real_ip_from ::ffff:10.1.2.3/104; set_real_ip_from 2001:db8::/32;":                                   "{X-Forwarded-For [10.0.0.0/8 2001:db8::/32] false}",
		"real_ip_recursive on;": "none",
	} {
		for _, ofHost := range []bool{false, true} {
			made, err := snippet.Script(text, ofHost, &snippet.Known{})
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			got := "none"
			if made.RealIP != nil {
				got = fmt.Sprint(*made.RealIP)
			}
			if got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
		}
	}
	for text, want := range map[string]string{
		"real_ip_header CF-Connecting-IP;":                                            "no set_real_ip_from beside it",
		"set_real_ip_from 10.0.0.0/8;":                                                "no real_ip_header beside it",
		"set_real_ip_from unix:; real_ip_header X-A;":                                 "no set_real_ip_from beside it",
		"set_real_ip_from 10.0.0.0/8; real_ip_header X-Real-IP;":                      "not one field that clients are sent with",
		"set_real_ip_from 10.0.0.0/8; real_ip_header X_Forwarded_Host;":               "not one field that clients are sent with",
		"set_real_ip_from 10.0.0.0/8; real_ip_header ssl-client-x;":                   "not one field that clients are sent with",
		"set_real_ip_from 10.0.0.0/8; real_ip_header 'X A';":                          "not one field that clients are sent with",
		"set_real_ip_from 10.0.0.0/8; real_ip_header X-A; real_ip_header X-B;":        "not one field that clients are sent with",
		"set_real_ip_from proxy.test; real_ip_header X-A;":                            "neither a CIDR nor an address",
		"set_real_ip_from fe80::1%eth0; real_ip_header X-A;":                          "neither a CIDR nor an address",
		"set_real_ip_from 10.0.0.0/8 10.1.0.0/16; real_ip_header X-A;":                "not one argument",
		"real_ip_recursive maybe;":                                                    "neither on nor off",
		strings.Repeat("set_real_ip_from 10.0.0.0/8;\n", 257) + "real_ip_header X-A;": "more than 256",
	} {
		if _, err := snippet.Script(text, false, &snippet.Known{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}
