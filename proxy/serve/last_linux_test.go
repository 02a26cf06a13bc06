//go:build !portable

package serve_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// sized answers with as many bytes as the path says.
func sized(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	w.Header().Set("Content-Length", strconv.Itoa(n))
	io.WriteString(w, strings.Repeat("x", n))
}

// The end of a connection comes together with the last bytes of its last response: who
// has these need not wait for it.
func TestTheEndComesWithTheLastBytes(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, sized))
	for range 200 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "GET /10 HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
		buf := make([]byte, 4<<10)
		var n, after int
		raw.Control(func(fd uintptr) {
			read := func() (k int) { k, _, err = syscall.Recvfrom(int(fd), buf, syscall.MSG_DONTWAIT); return k }
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
				if n = read(); err != syscall.EAGAIN && err != syscall.EINTR {
					break
				}
			}
			got := string(buf[:max(n, 0)])
			if after = read(); !strings.HasSuffix(got, "\r\n\r\nxxxxxxxxxx") {
				t.Errorf("%q came first, then %d, %v", got, after, err)
			}
		})
		c.Close()
		if after != 0 || err != nil {
			t.Fatalf("the end was not there with the response: %d, %v", after, err)
		}
	}
}

// What is held back for the end arrives, whatever its size, and where the client has
// sent what nobody reads: closing alone would throw it away.
func TestTheLastResponseArrivesWhole(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, sized))
	secure := r.dialTLS()
	addr := secure.RemoteAddr().String()
	secure.Close()
	for _, size := range []int{0, 1, 3000, 5000, 30_000, 300_000} {
		for _, unread := range []int{0, 200_000} {
			if unread > 0 && size > 10_000 {
				continue // what is not on its way when we close is lost
			}
			for _, over := range []string{"TCP", "TLS"} {
				name := fmt.Sprintf("%d bytes over %s, %d unread", size, over, unread)
				c, err := net.Dial("tcp", r.addr)
				if over == "TLS" {
					c, err = tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
				}
				if err != nil {
					t.Fatal(err)
				}
				c.SetDeadline(time.Now().Add(30 * time.Second))
				fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n%s", size, strings.Repeat("?", unread))
				all, err := io.ReadAll(c)
				if err != nil && unread == 0 {
					t.Errorf("%s: %v", name, err)
				}
				if _, body, _ := strings.Cut(string(all), "\r\n\r\n"); len(body) != size {
					t.Errorf("%s: %d bytes came (%v)", name, len(body), err)
				}
				c.Close()
			}
		}
	}
}
