package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serveHTTP2 is a pod that speaks HTTP/2, of one request at a time.
func (a *attempts) serveHTTP2(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	var asked *http2.MetaHeadersFrame
	var body []byte
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
			continue
		case *http2.MetaHeadersFrame:
			asked, body = frame, nil
		case *http2.DataFrame:
			body = append(body, frame.Data()...)
			if n := uint32(len(frame.Data())); n > 0 {
				f.WriteWindowUpdate(0, n)
				f.WriteWindowUpdate(frame.StreamID, n)
			}
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) && asked != nil && !a.answer(f, asked, body) {
			return
		}
	}
}

// answer does what is to be done, and reports whether the connection stays.
func (a *attempts) answer(f *http2.Framer, asked *http2.MetaHeadersFrame, body []byte) bool {
	said := map[string]string{}
	for _, field := range asked.Fields {
		said[field.Name] = field.Value
	}
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	write := func(name, value string) { encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	switch does := a.does(said["x-key"], said["x-tries"]); does {
	case "close":
		return false
	case "garbage":
		write(":status", "200")
		write("Upper", "case")
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: asked.StreamID, BlockFragment: head.Bytes(), EndHeaders: true})
	case "half":
		write(":status", "200")
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: asked.StreamID, BlockFragment: head.Bytes()})
		return false
	default:
		write(":status", does)
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: asked.StreamID, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: said[":method"] == "HEAD"})
		if said[":method"] != "HEAD" {
			for text := fmt.Appendf(nil, "%s %q", said[":method"], body); ; {
				n := min(len(text), 16<<10)
				f.WriteData(asked.StreamID, n == len(text), text[:n])
				if text = text[n:]; len(text) == 0 {
					break
				}
			}
		}
	}
	return true
}
