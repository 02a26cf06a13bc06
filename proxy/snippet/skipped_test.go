package snippet_test

import (
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
