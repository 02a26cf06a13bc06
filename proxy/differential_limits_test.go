package proxy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestDrawnLimitsSameAsNginx draws limits that no time heals while the test runs, beside what
// else decides about a request, and clients at several addresses.
func TestDrawnLimitsSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := limitsDrawer{parts}
	compareWithNginx(t, draw.cases(count, draw.options, draw.request))
}

// limitsDrawer draws limits.
type limitsDrawer struct{ snippetDrawer }

func (d limitsDrawer) options() sameCase {
	rpm, burst := 1+d.IntN(3), 5
	c := sameCase{with: map[string]string{"limit-rpm": strconv.Itoa(rpm)}}
	if d.IntN(2) == 0 {
		burst = 1 + d.IntN(7)
		c.with["limit-burst-multiplier"] = strconv.Itoa(burst)
	}
	key := "$binary_remote_addr"
	if d.IntN(3) == 0 {
		c.with[d.of("limit-allowlist", "limit-whitelist")] = "127.0.0.3, 127.0.0.4/31"
		c.http = "geo $exempt_N { default 0; 127.0.0.3 1; 127.0.0.4/31 1; } map $exempt_N $limited_N { 0 $binary_remote_addr; 1 ''; } "
		key = "$limited_N"
	}
	c.http += fmt.Sprintf("limit_req_zone %s zone=rpm_N:1m rate=%dr/m;\n", key, rpm)
	c.inside = fmt.Sprintf("limit_req zone=rpm_N burst=%d nodelay; ", rpm*burst)
	for _, extra := range d.some(4, []string{"auth-type=basic", "whitelist-source-range=127.0.0.2/31", "denylist-source-range=127.0.0.1"}, []string{"permanent-redirect=https://new.test/at", "enable-cors=true", "rewrite-target=/fixed", "limit-connections=3"}) {
		if c.say(extra); extra == "limit-connections=3" {
			c.http += "limit_conn_zone " + key + " zone=conn_N:1m;\n"
			c.inside += "limit_conn conn_N 3; "
		}
	}
	return c
}

func (d limitsDrawer) request() string {
	lines := []string{d.of("GET ", "HEAD ", "OPTIONS ", "POST ") + d.of("/x", "/status/404", "/status/500")}
	lines = append(lines, "from 127.0.0."+d.of("1", "3", "3", "5", "6"))
	if d.IntN(2) == 0 {
		lines = append(lines, "Authorization: Basic "+d.of("YW5uOnRlc3Q=", "YW5uOndyb25n"))
	}
	return strings.Join(lines, "\n")
}
