package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// askAdmin asks the process at the admin address, HOST:PORT or https://HOST:PORT.
func (e *env) askAdmin(ctx context.Context, tokenFile, path string, into any) error {
	where := e.admin + path
	if !strings.HasPrefix(where, "https://") {
		where = "http://" + where
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return fmt.Errorf("%w: --admin: %w", errBadInput, err)
	}
	if tokenFile != "" {
		if req.URL.Scheme != "https" {
			return fmt.Errorf("%w: --admin-token-file: a token is shown over TLS only; write --admin https://%s", errBadInput, e.admin)
		}
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return fmt.Errorf("%w: --admin-token-file: %w", errBadInput, err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: trusting(req.URL)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	for err == nil && resp.StatusCode == http.StatusTooManyRequests && pause(ctx, resp) { // it is read by one at a time
		resp, err = client.Do(req)
	}
	if err != nil {
		return fmt.Errorf("nothing answers at --admin %s: %w", e.admin, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // what it says is only a comment on the status
		return fmt.Errorf("%s answers %s: %s", where, resp.Status, strings.TrimSpace(string(said)))
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s is not Quayside's: %w", where, err)
	}
	return nil
}

// trusting verifies the certificate of the other side, unless that is on this very
// machine, as the near end of kubectl port-forward is: there nobody is in between,
// and a process behind it has signed its certificate itself.
func trusting(to *url.URL) *tls.Config {
	ip, err := netip.ParseAddr(to.Hostname())
	return &tls.Config{InsecureSkipVerify: to.Hostname() == "localhost" || err == nil && ip.IsLoopback()}
}

// pause waits until a page may be asked for again, closes the answer that said so, and
// reports whether there is time for it.
func pause(ctx context.Context, resp *http.Response) bool {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	wait := time.Duration(seconds) * time.Second
	if end, bounded := ctx.Deadline(); err != nil || seconds < 0 || bounded && time.Until(end) < wait {
		return false
	}
	resp.Body.Close()
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return true // the next attempt says so
	}
}
