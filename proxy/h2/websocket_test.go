package h2

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

var connect = []string{":method: CONNECT", ":protocol: websocket", ":scheme: https", ":path: /chat", ":authority: a.example"}

// far is what a handler sees of a client's tunnel.
type far interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// tunnelTo lets pod speak through each tunnel. Other requests are echoed.
func tunnelTo(pod func(c far)) handlerFunc {
	return func(ex *exchange.Exchange) {
		r := &ex.Request
		if r.Upgrade == nil {
			echo(ex)
			return
		}
		if string(r.Upgrade) != "websocket" || string(r.Method) != "GET" || string(r.Target) != "/chat" || len(r.UpgradeKey) != 24 || r.Body != nil {
			ex.Answer(400, "not what HTTP/1.1 would say\n")
			return
		}
		ex.Response.Status = 101
		ex.Response.Header.Add("Upgrade", "websocket")
		ex.Response.Header.Add("Sec-WebSocket-Protocol", "chat")
		ex.Response.Upgraded = func(c io.ReadWriteCloser) {
			defer c.Close()
			both, _ := c.(far)
			pod(both)
		}
	}
}

// hear reads what comes through a stream until it is want: the status, "name=value"
// of its fields, the bytes, END or RST and a code.
func (c *client) hear(id uint32, want string) {
	c.t.Helper()
	got := ""
	for got != want {
		if !strings.HasPrefix(want, got) {
			c.t.Fatalf("got %q, want %q", got, want)
		}
		f, err := c.fr.ReadFrame()
		if err != nil {
			c.t.Fatalf("got %q and %v, want %q", got, err, want)
		}
		if f.Header().StreamID != id {
			continue
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			fields, err := c.dec.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				c.t.Fatal(err)
			}
			for _, h := range fields {
				if h.Name != "date" && h.Name != "server" {
					got += h.Name + "=" + h.Value + " "
				}
			}
			if f.StreamEnded() {
				got += "END"
			}
		case *http2.DataFrame:
			got += string(f.Data())
			if f.StreamEnded() {
				got += "END"
			}
		case *http2.RSTStreamFrame:
			got += "RST " + f.ErrCode.String()
		}
	}
}

// granted is how a tunnel begins: no length, nothing of HTTP/1.1.
const granted = ":status=200 sec-websocket-protocol=chat "

// Clients are told that they may, bytes go both ways, and each direction ends by
// itself, whoever ends first.
func TestTunnel(t *testing.T) {
	heard := make(chan string, 1)
	r := newRig(t, Options{}, tunnelTo(func(c far) {
		io.WriteString(c, "hello ")
		first := make([]byte, 5)
		io.ReadFull(c, first)
		c.Write(first)
		if string(first) == "leave" {
			c.CloseWrite()
		}
		all, err := io.ReadAll(c)
		if err != nil {
			all = append(all, err.Error()...)
		}
		if string(first) != "leave" {
			io.WriteString(c, "bye")
			c.CloseWrite()
		}
		heard <- string(all)
	}))
	c := r.raw()
	io.WriteString(c.nc, http2.ClientPreface)
	c.fr.WriteSettings()
	f, err := c.fr.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := f.(*http2.SettingsFrame); !ok {
		t.Errorf("first %v", f)
	} else if v, ok := s.Value(http2.SettingEnableConnectProtocol); !ok || v != 1 {
		t.Error("extended CONNECT is not offered")
	}
	c.headers(1, false, connect...)
	c.hear(1, granted+"hello ")
	c.fr.WriteData(1, false, []byte("first"))
	c.hear(1, "first")
	c.fr.WriteData(1, true, []byte("and last"))
	c.hear(1, "byeEND")
	if got := <-heard; got != "and last" {
		t.Errorf("heard %q", got)
	}
	c.headers(3, false, connect...)
	c.fr.WriteData(3, false, []byte("leave")) // before it was granted
	c.hear(3, granted+"hello leaveEND")
	c.fr.WriteData(3, false, []byte("I go "))
	c.fr.WriteData(3, true, []byte("on"))
	if got := <-heard; got != "I go on" {
		t.Errorf("heard %q behind its own end", got)
	}
	if !c.alive(5) {
		t.Error("the connection is dead")
	}
	if seen := r.seen.statuses(); len(seen) < 2 || seen[0] != (ended{101, false}) || seen[1] != (ended{101, false}) {
		t.Errorf("seen %v", seen)
	}
}

// A reset is a reset to the other side, and so is all that no tunnel may carry.
func TestTunnelResets(t *testing.T) {
	heard := make(chan error, 1)
	r := newRig(t, Options{}, tunnelTo(func(c far) {
		_, err := io.ReadAll(c)
		if heard <- err; err != nil {
			if _, err := io.WriteString(c, "x"); err == nil {
				t.Error("a stream that was reset takes data")
			}
		}
	}))
	c := r.dial()
	for i, by := range []struct {
		name string
		do   func(id uint32)
		says string
	}{
		{"RST_STREAM", func(id uint32) { c.fr.WriteRSTStream(id, http2.ErrCodeCancel) }, ""},
		{"HEADERS", func(id uint32) { c.headers(id, true, "x: y") }, "RST PROTOCOL_ERROR"},
		{"an overflowing window", func(id uint32) { c.fr.WriteWindowUpdate(id, frame.MaxWindow) }, "RST FLOW_CONTROL_ERROR"},
	} {
		id := uint32(2*i + 1)
		c.headers(id, false, connect...)
		c.hear(id, granted)
		by.do(id)
		c.hear(id, by.says)
		if err := <-heard; !errors.As(err, new(*exchange.StreamReset)) {
			t.Errorf("%s: the other side hears %v", by.name, err)
		}
	}
	c.headers(99, false, connect...)
	c.hear(99, granted)
	c.fr.WriteData(99, true, nil)
	if err := <-heard; err != nil {
		t.Error(err)
	}
	c.hear(99, "RST CANCEL") // it closes without having ended
	if !c.alive(101) {
		t.Error("the connection is dead")
	}
}

// Nobody takes more than the other side can hold.
func TestTunnelBackPressure(t *testing.T) {
	wrote, read := make(chan int, 100), make(chan struct{})
	r := newRig(t, Options{}, tunnelTo(func(c far) {
		for _, n := range []int{5, 10} {
			k, _ := c.Write(make([]byte, n))
			wrote <- k
		}
		<-read
		io.Copy(io.Discard, c)
	}))
	c := r.dial(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	c.headers(1, false, connect...)
	c.hear(1, granted+strings.Repeat("\x00", 10))
	if n := <-wrote; n != 5 {
		t.Errorf("wrote %d", n)
	}
	select {
	case n := <-wrote:
		t.Errorf("%d bytes went into a window of 5", n)
	default:
	}
	c.fr.WriteWindowUpdate(1, 100)
	c.hear(1, strings.Repeat("\x00", 5))
	if n := <-wrote; n != 10 {
		t.Errorf("wrote %d", n)
	}
	for range streamWindow / frame.Size {
		c.fr.WriteData(1, false, make([]byte, frame.Size))
	}
	c.fr.WritePing(false, [8]byte{1})
	for pinged := false; !pinged; { // all has arrived, and nothing was granted
		f, err := c.fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 1 {
			t.Error("window is granted for what nobody has read")
		}
		_, pinged = f.(*http2.PingFrame)
	}
	close(read)
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 1 {
			break
		}
	}
}

// A tunnel may be silent for longer than a request's body; who judges that is not
// here.
func TestTunnelSilence(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	r := newRig(t, Options{Timeout: timeout}, tunnelTo(func(c far) {
		time.Sleep(2 * timeout) // what would end anything else
		io.WriteString(c, "at last")
		c.CloseWrite()
		io.ReadAll(c)
	}))
	c := r.dial()
	c.headers(1, false, connect...)
	c.hear(1, granted+"at lastEND")
	c.fr.WriteData(1, true, nil)
}

// A tunnel that is closed late closes nobody else's stream.
func TestTunnelClosedLate(t *testing.T) {
	tunnels := make(chan far, 1)
	r := newRig(t, Options{}, tunnelTo(func(c far) {
		if _, err := io.ReadAll(c); err != nil {
			t.Error(err)
		}
		c.CloseWrite()
		tunnels <- c
	}))
	c := r.dial()
	c.headers(1, false, connect...)
	c.fr.WriteData(1, true, nil)
	c.hear(1, granted+"END")
	late := <-tunnels
	for id := uint32(3); id < 50; id += 2 {
		c.headers(id, false, connect...)
		c.hear(id, granted)
		late.Close()
		c.fr.WriteData(id, true, nil)
		c.hear(id, "END")
		<-tunnels
	}
}

// A connection that ends takes its tunnels with it.
func TestTunnelEndsWithItsConnection(t *testing.T) {
	over := make(chan error, 1)
	r := newRig(t, Options{}, tunnelTo(func(c far) { _, err := io.ReadAll(c); over <- err }))
	c := r.dial()
	c.headers(1, false, connect...)
	c.hear(1, granted)
	c.nc.Close()
	if err := <-over; err == nil {
		t.Error("it looks like an end in order")
	}
}
