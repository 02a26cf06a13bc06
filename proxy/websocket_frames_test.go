package proxy_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// framedClient speaks frames of HTTP/2 to a proxy.
type framedClient struct {
	t   *testing.T
	c   net.Conn
	fr  *http2.Framer
	dec *hpack.Decoder
}

func dialFramed(t *testing.T, addr string) *framedClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, http2.ClientPreface)
	f := &framedClient{t, c, http2.NewFramer(c, c), hpack.NewDecoder(4096, nil)}
	f.fr.WriteSettings()
	return f
}

// connect asks for a WebSocket.
func (f *framedClient) connect(id uint32, path string) {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, field := range [][2]string{
		{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "http"}, {":path", path}, {":authority", "chat.example"},
		{"sec-websocket-version", "13"}, {"origin", "http://chat.example"},
	} {
		enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: b.Bytes()})
}

// hear reads what comes through a stream until it is want: the status, the bytes,
// END, or RST and its code.
func (f *framedClient) hear(id uint32, want string) {
	f.t.Helper()
	for got := ""; got != want; {
		if !strings.HasPrefix(want, got) {
			f.t.Fatalf("got %q, want %q", got, want)
		}
		frame, err := f.fr.ReadFrame()
		if err != nil {
			f.t.Fatalf("got %q and %v, want %q", got, err, want)
		}
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			fields, _ := f.dec.DecodeFull(frame.HeaderBlockFragment())
			if frame.StreamID == id {
				got += fields[0].Value + " "
			}
		case *http2.DataFrame:
			if frame.StreamID == id {
				got += string(frame.Data())
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == id {
				got += "RST " + frame.ErrCode.String()
			}
		}
		if frame.Header().StreamID == id && frame.Header().Flags.Has(http2.FlagDataEndStream) && frame.Header().Type == http2.FrameData {
			got += "END"
		}
	}
}
