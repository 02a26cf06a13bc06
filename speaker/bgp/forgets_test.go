package bgp

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"
)

// TestARestartDrainsWhereRoutesAreNotKept: graceful restart is wanted here, and the router
// does not speak it, as routers of Cisco by default. It would drop the routes with the
// connection, so a restart hands the traffic over first. Of one that keeps them nothing may
// be heard: any word would make it drop them.
func TestARestartDrainsWhereRoutesAreNotKept(t *testing.T) {
	helper := raw(kindOpen, append([]byte{4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7,
		18, 2, 16, 1, 4, 0, 1, 0, 1, 64, 2, 0, 0}, 65, 4, 0, 0, 0xfd, 0xe9)...)
	for _, c := range []struct {
		name     string
		open     []byte
		drains   bool
		code, sb byte
	}{
		{"no graceful restart", rawOpen(90), true, 6, 2},
		{"helper", helper, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRude(t, func(set *Settings, opts *Options) { set.Restart, opts.Drain = time.Minute, time.Millisecond })
			conn := r.accept()
			if _, err := conn.Write(append(c.open, raw(kindKeepalive)...)); err != nil {
				t.Fatal(err)
			}
			r.s.await("r", "told", func(state SessionState) bool { return state.Announced == 1 })
			left := make(chan error, 1)
			go func() { left <- r.s.Leave(context.Background(), "restarts", true) }()
			var heard bytes.Buffer
			code, sub, err := last(tee{conn, &heard})
			if code != c.code || sub != c.sb || err != nil {
				t.Errorf("it ended with %d/%d, %v; want %d/%d", code, sub, err, c.code, c.sb)
			}
			if tagged := bytes.Contains(heard.Bytes(), []byte{0xff, 0xff, 0, 0}); tagged != c.drains {
				t.Errorf("GRACEFUL_SHUTDOWN was told: %v", tagged)
			}
			if err := <-left; err != nil {
				t.Error(err)
			}
		})
	}
}

// tee is a connection whose bytes are written down.
type tee struct {
	net.Conn
	to *bytes.Buffer
}

func (t tee) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.to.Write(b[:n])
	return n, err
}
