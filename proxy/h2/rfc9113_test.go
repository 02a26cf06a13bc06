package h2

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"quayside.io/proxy/frame"
)

// ruling is what one MUST of RFC 9113 or 7541 makes of what a client sends: the
// outcome of stream 1, or of the connection.
type ruling struct {
	name string // section, and what it says
	send func(*client)
	want string // beginning of the outcome; several are separated by "|"
	over bool   // the connection may not go on
}

func post(more ...string) []string {
	return with([]string{":method: POST", ":scheme: http", ":path: /p", ":authority: a.example"}, more...)
}

func request(end bool, fields ...string) func(*client) {
	return func(c *client) { c.headers(1, end, fields...) }
}

func rawFrame(kind http2.FrameType, flags http2.Flags, id uint32, payload string) func(*client) {
	return func(c *client) { c.fr.WriteRawFrame(kind, flags, id, []byte(payload)) }
}

// opened does something to stream 1, which has sent half a request.
func opened(then func(*client)) func(*client) {
	return func(c *client) { c.headers(1, false, post()...); then(c) }
}

func malformed() []ruling {
	var all []ruling
	for _, c := range []struct {
		section string
		fields  []string
	}{
		{"8.2.1 upper case in a name", with(get, "X-Big: 1")},
		{"8.2.1 space in a name", with(get, "x y: 1")},
		{"8.2.1 CR in a value", with(get, "x: a\rb")},
		{"8.2.1 LF in a value", with(get, "x: a\nb")},
		{"8.2.1 NUL in a value", with(get, "x: a\x00b")},
		{"8.2.1 LF in the path", with(without(get, ":path"), ":path: /\nx")},
		{"8.2.1 space around a pseudo field's value", with(without(get, ":path"), ":path: /x ")},
		{"8.2.2 connection", with(get, "connection: x")},
		{"8.2.2 keep-alive", with(get, "keep-alive: 5")},
		{"8.2.2 proxy-connection", with(get, "proxy-connection: x")},
		{"8.2.2 transfer-encoding", with(get, "transfer-encoding: chunked")},
		{"8.2.2 upgrade", with(get, "upgrade: websocket")},
		{"8.2.2 te with more than trailers", with(get, "te: trailers, gzip")},
		{"8.3 unknown pseudo field", with([]string{":x: 1"}, get...)},
		{"8.3 pseudo field of a response", with([]string{":status: 200"}, get...)},
		{"8.3 pseudo field behind others", with([]string{"x: 1"}, get...)},
		{"8.3.1 no method", without(get, ":method")},
		{"8.3.1 no scheme", without(get, ":scheme")},
		{"8.3.1 no path", without(get, ":path")},
		{"8.3.1 empty path", with(without(get, ":path"), ":path: ")},
		{"8.3.1 two methods", with(get, ":method: GET")},
		{"8.3.1 two paths", with(get, ":path: /b")},
		{"8.3.1 two schemes", with(get, ":scheme: http")},
		{"8.3.1 two authorities", with(get, ":authority: a.example")},
		{"8.3.1 Host is another than :authority", with(get, "host: b.example")},
		{"8.3.1 two Hosts", with(without(get, ":authority"), "host: a", "host: b")},
		{"8.5 CONNECT with a path", []string{":method: CONNECT", ":authority: a:1", ":path: /", ":scheme: http"}},
		{"smuggling: a space in the path", with(without(get, ":path"), ":path: / HTTP/1.1")},
		{"smuggling: a space in the query", with(without(get, ":path"), ":path: /?a HTTP/1.1")},
		{"smuggling: CRLF in the method", with(without(get, ":method"), ":method: GET / HTTP/1.1\r\nx: y")},
		{"smuggling: a space in the method", with(without(get, ":method"), ":method: GET /x")},
		{"smuggling: two lengths", with(get, "content-length: 0", "content-length: 0")},
		{"smuggling: a length with a sign", with(get, "content-length: +1")},
		{"8.1.1 a length and no content", with(get, "content-length: 1")},
	} {
		all = append(all, ruling{c.section, request(true, c.fields...), "RST PROTOCOL_ERROR", false})
	}
	for section, fields := range map[string][]string{
		"8.2.1 space before a value": with(get, "x:  a"), "8.2.1 space behind a value": with(get, "x: a "), "8.2.1 tab": with(get, "x: a\t", "y: b"),
		"8.2.1 space around a Host": with(get, "host: a.example "), "8.2.1 space around a length": with(get, "content-length:  1"),
	} {
		all = append(all, ruling{section, request(true, fields...), "400 ", false})
	}
	return all
}

// literalField sends GET and one more field, which hpack's encoder would not write.
func literalField(name, value string) func(*client) {
	return func(c *client) {
		b := append([]byte(nil), c.block(get...)...)
		b = append(b, 0, byte(len(name)))
		b = append(b, name...)
		b = append(b, byte(len(value)))
		b = append(b, value...)
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: b})
	}
}

func fieldBlock(b ...byte) func(*client) {
	return func(c *client) {
		c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: b})
	}
}

// held opens stream 1 with all of a request, and grants no window for the answer, so
// that the stream is half closed; then comes more.
func held(then func(*client)) func(*client) {
	return func(c *client) {
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.headers(1, true, get...)
		then(c)
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
	}
}

// resetByClient opens stream 1, resets it, and sends more on it.
func resetByClient(then func(*client)) func(*client) {
	return opened(func(c *client) { c.fr.WriteRSTStream(1, http2.ErrCodeCancel); then(c) })
}

// huffman is GET with a field x whose value is so coded.
func huffman(value ...byte) func(*client) {
	return fieldBlock(append([]byte{0x82, 0x86, 0x84, 0x41, 0x01, 'a', 0x00, 0x01, 'x', 0x80 | byte(len(value))}, value...)...)
}

// rulingsOfH2spec are those that h2spec asks for, in strict mode, beyond the others.
func rulingsOfH2spec() []ruling {
	ping := func(c *client) { c.fr.WritePing(false, [8]byte{}) }
	return []ruling{
		{"3.4 another preface", nil, "GOAWAY PROTOCOL_ERROR|closed", true},
		{"4.2 a DATA frame as large as allowed", opened(rawFrame(http2.FrameData, 1, 1, strings.Repeat("x", frame.Size))), "200 POST /p host=a.example path=/p length=-1 body=16384 bytes", false},
		{"5.1 idle: PRIORITY", func(c *client) { c.fr.WritePriority(5, http2.PriorityParam{StreamDep: 3}); c.headers(1, true, get...) }, "200", false},
		{"5.1 half closed: DATA", held(rawFrame(http2.FrameData, 1, 1, "x")), "RST STREAM_CLOSED", false},
		{"5.1 half closed: HEADERS", held(func(c *client) { c.headers(1, true, get...) }), "RST STREAM_CLOSED", false},
		{"5.1 half closed: CONTINUATION", held(func(c *client) { c.fr.WriteContinuation(1, true, nil) }), "GOAWAY PROTOCOL_ERROR", true},
		{"5.1 half closed: WINDOW_UPDATE, PRIORITY", held(func(c *client) {
			c.fr.WritePriority(1, http2.PriorityParam{StreamDep: 3})
			c.fr.WriteWindowUpdate(1, 1000)
		}), "200", false},
		{"5.1 half closed: RST_STREAM", held(func(c *client) { c.fr.WriteRSTStream(1, http2.ErrCodeCancel); c.fr.WriteWindowUpdate(0, 1) }), "", false},
		{"5.1 closed by the client: DATA", resetByClient(rawFrame(http2.FrameData, 1, 1, "x")), "RST STREAM_CLOSED", false},
		{"5.1 closed by the client: HEADERS", resetByClient(func(c *client) { c.headers(1, true, get...) }), "GOAWAY STREAM_CLOSED", true},
		{"5.1 closed by the client: CONTINUATION", resetByClient(func(c *client) { c.fr.WriteContinuation(1, true, nil) }), "GOAWAY PROTOCOL_ERROR", true},
		{"5.3.1 PRIORITY that depends on itself", func(c *client) { c.fr.WritePriority(1, http2.PriorityParam{StreamDep: 1}) }, "RST PROTOCOL_ERROR", false},
		{"5.5 an unknown frame within a field block", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			c.fr.WriteRawFrame(0x42, 0, 1, []byte("x"))
		}, "GOAWAY PROTOCOL_ERROR", true},
		{"6.2 HEADERS of another stream within a field block", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			c.headers(3, true, get...)
		}, "GOAWAY PROTOCOL_ERROR", true},
		{"6.2 padding and priority", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: c.block(get...),
				PadLength: 200, Priority: http2.PriorityParam{StreamDep: 9, Weight: 255, Exclusive: true}})
		}, "200", false},
		{"6.9.1 no more than a window allows", func(c *client) {
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
			c.headers(1, true, get...)
			c.hearOne(1)
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		}, "ET / host", false},
		{"6.9.2 a window below nothing", func(c *client) {
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
			c.headers(1, true, get...)
			c.hearOne(1)
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			c.fr.WriteWindowUpdate(1, 2) // 1 is left
			c.hearOne(1)
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		}, "T / host", false},
		{"6.10 CONTINUATION behind the last", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(post()...)})
			c.fr.WriteContinuation(1, true, nil)
			c.fr.WriteContinuation(1, true, nil)
		}, "GOAWAY PROTOCOL_ERROR", true},
		{"6.10 CONTINUATION behind DATA", opened(func(c *client) { c.fr.WriteData(1, false, []byte("x")); c.fr.WriteContinuation(1, true, nil) }), "GOAWAY PROTOCOL_ERROR", true},
		{"7 GOAWAY with an unknown error", func(c *client) { c.fr.WriteGoAway(0, 0xff, nil); ping(c) }, "", false},
		{"7 RST_STREAM with an unknown error", opened(func(c *client) { c.fr.WriteRSTStream(1, 0xff); ping(c) }), "", false},
		{"8.1 a pseudo field of a request in a trailer", opened(func(c *client) { c.headers(1, true, ":method: POST") }), "RST PROTOCOL_ERROR", false},

		{"7541 2.3.3 a literal with a name of nothing", fieldBlock(0x82, 0x86, 0x84, 0x7f, 0x7f, 0x01, 'x'), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 4.2 a new size behind fields", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: append(c.block(get...), 0x20)})
		}, "GOAWAY COMPRESSION_ERROR", true},
		{"7541 4.2 two new sizes before fields", fieldBlock(0x20, 0x3f, 0xe1, 0x1f, 0x82, 0x86, 0x84, 0x41, 0x01, 'a'), "200", false},
		{"7541 5.2 padding that is not ones", huffman(0x18), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 5.2 a string that is coded well", huffman(0x1f), "200 GET / host=a path=/ length=0 x=a", false},
		{"7541 6.2 each kind of literal", fieldBlock(0x82, 0x86, 0x84, 0x41, 0x01, 'a', 0x40, 0x01, 'i', 0x01, '1', 0x00, 0x01, 'w', 0x01, '2', 0x10, 0x01, 'n', 0x01, '3', 0xbe),
			"200 GET / host=a path=/ length=0 i=1 w=2 n=3 i=1", false},
	}
}

func rulings() []ruling {
	return append(append(malformed(), rulingsOfH2spec()...), []ruling{
		{"8.2.1 colon in a name", literalField("x:y", "1"), "RST PROTOCOL_ERROR", false},
		{"8.2.1 empty name", literalField("", "1"), "RST PROTOCOL_ERROR", false},
		{"8.2.1 control character in a name", literalField("x\x01", "1"), "RST PROTOCOL_ERROR", false},

		{"3.4 the first frame is SETTINGS", nil, "GOAWAY PROTOCOL_ERROR", true},
		{"4.1 frames of unknown type are ignored", func(c *client) { rawFrame(0x42, 0xff, 0, "x")(c); c.headers(1, true, get...) }, "200", false},
		{"4.1 unknown flags are ignored", func(c *client) {
			c.fr.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream|0x40, 1, c.block(get...))
		}, "200", false},
		{"4.1 the reserved bit is ignored", func(c *client) {
			c.fr.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1|1<<31, c.block(get...))
		}, "200", false},
		{"4.2 a DATA frame over the limit", opened(rawFrame(http2.FrameData, 0, 1, strings.Repeat("x", frame.Size+1))), "GOAWAY FRAME_SIZE_ERROR", true},
		{"4.2 a HEADERS frame over the limit", rawFrame(http2.FrameHeaders, 4, 1, strings.Repeat("x", frame.Size+1)), "GOAWAY FRAME_SIZE_ERROR", true},
		{"4.3 a field block that cannot be decoded", fieldBlock(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "GOAWAY COMPRESSION_ERROR", true},
		{"4.3 another frame within a field block", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			c.fr.WritePing(false, [8]byte{})
		}, "GOAWAY PROTOCOL_ERROR", true},
		{"4.3 another stream's frame within a field block", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			c.fr.WriteContinuation(3, true, nil)
		}, "GOAWAY PROTOCOL_ERROR", true},
		{"4.3 a field block in pieces", func(c *client) {
			b := c.block(get...)
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: b[:2]})
			c.fr.WriteContinuation(1, false, nil)
			c.fr.WriteContinuation(1, true, b[2:])
		}, "200", false},

		{"5.1 idle: DATA", rawFrame(http2.FrameData, 0, 1, "x"), "GOAWAY PROTOCOL_ERROR", true},
		{"5.1 idle: RST_STREAM", func(c *client) { c.fr.WriteRSTStream(1, 0) }, "GOAWAY PROTOCOL_ERROR", true},
		{"5.1 idle: WINDOW_UPDATE", func(c *client) { c.fr.WriteWindowUpdate(1, 1) }, "GOAWAY PROTOCOL_ERROR", true},
		{"5.1 idle: CONTINUATION", func(c *client) { c.fr.WriteContinuation(1, true, nil) }, "GOAWAY PROTOCOL_ERROR", true},
		{"5.1 closed: DATA", func(c *client) { c.headers(1, true, get...); c.outcome(1); rawFrame(http2.FrameData, 1, 1, "x")(c) }, "RST STREAM_CLOSED", false},
		{"5.1 closed: HEADERS", func(c *client) { c.headers(1, true, get...); c.outcome(1); c.headers(1, true, get...) }, "GOAWAY STREAM_CLOSED", true},
		{"5.1 closed: WINDOW_UPDATE and RST_STREAM are ignored", func(c *client) {
			c.headers(1, true, get...)
			c.outcome(1)
			c.fr.WriteWindowUpdate(1, 1)
			c.fr.WriteRSTStream(1, 0)
			c.fr.WritePriority(1, http2.PriorityParam{StreamDep: 3})
			c.headers(3, true, get...)
		}, "", false},
		{"5.1.1 even stream", func(c *client) { c.headers(2, true, get...) }, "GOAWAY PROTOCOL_ERROR", true},
		{"5.1.1 lower stream", func(c *client) { c.headers(5, true, get...); c.headers(3, true, get...) }, "GOAWAY PROTOCOL_ERROR", true},
		{"5.3.1 HEADERS that depends on itself", func(c *client) {
			c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: c.block(get...),
				Priority: http2.PriorityParam{StreamDep: 1}})
		}, "RST PROTOCOL_ERROR", false},

		{"6.1 DATA on stream 0", rawFrame(http2.FrameData, 0, 0, "x"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.1 more padding than payload", opened(rawFrame(http2.FrameData, http2.FlagDataPadded, 1, "\x06xxxxx")), "GOAWAY PROTOCOL_ERROR", true},
		{"6.1 no length of padding", opened(rawFrame(http2.FrameData, http2.FlagDataPadded, 1, "")), "GOAWAY FRAME_SIZE_ERROR", true},
		{"6.1 padding is no content", opened(rawFrame(http2.FrameData, http2.FlagDataPadded|1, 1, "\x03abcxxx")), "200 POST /p host=a.example path=/p length=-1 body=abc", false},
		{"6.2 HEADERS on stream 0", rawFrame(http2.FrameHeaders, 5, 0, "\x82"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.2 more padding than fields", rawFrame(http2.FrameHeaders, 5|http2.FlagHeadersPadded, 1, "\x06\x82\x86\x84"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.3 PRIORITY on stream 0", rawFrame(http2.FramePriority, 0, 0, "\x00\x00\x00\x03\x01"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.3 PRIORITY of another size", opened(rawFrame(http2.FramePriority, 0, 1, "\x00\x00")), "RST FRAME_SIZE_ERROR|GOAWAY FRAME_SIZE_ERROR", true},
		{"6.4 RST_STREAM on stream 0", rawFrame(http2.FrameRSTStream, 0, 0, "\x00\x00\x00\x00"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.4 RST_STREAM of another size", opened(rawFrame(http2.FrameRSTStream, 0, 1, "\x00\x00\x00")), "GOAWAY FRAME_SIZE_ERROR", true},
		{"6.5 SETTINGS on a stream", rawFrame(http2.FrameSettings, 0, 1, ""), "GOAWAY PROTOCOL_ERROR", true},
		{"6.5 SETTINGS of another size", rawFrame(http2.FrameSettings, 0, 0, "\x00\x03\x00"), "GOAWAY FRAME_SIZE_ERROR", true},
		{"6.5 an acknowledgement with a payload", rawFrame(http2.FrameSettings, 1, 0, "\x00\x03\x00\x00\x00\x01"), "GOAWAY FRAME_SIZE_ERROR", true},
		{"6.5.2 ENABLE_PUSH is 0 or 1", rawFrame(http2.FrameSettings, 0, 0, "\x00\x02\x00\x00\x00\x02"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.5.2 INITIAL_WINDOW_SIZE over the limit", rawFrame(http2.FrameSettings, 0, 0, "\x00\x04\x80\x00\x00\x00"), "GOAWAY FLOW_CONTROL_ERROR", true},
		{"6.5.2 MAX_FRAME_SIZE below the least", rawFrame(http2.FrameSettings, 0, 0, "\x00\x05\x00\x00\x3f\xff"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.5.2 MAX_FRAME_SIZE over the limit", rawFrame(http2.FrameSettings, 0, 0, "\x00\x05\x01\x00\x00\x00"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.5.2 unknown settings are ignored", func(c *client) {
			rawFrame(http2.FrameSettings, 0, 0, "\x00\xff\x00\x00\x00\x02")(c)
			c.headers(1, true, get...)
		}, "200", false},
		{"6.6 PUSH_PROMISE", rawFrame(http2.FramePushPromise, 4, 1, "\x00\x00\x00\x02"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.7 PING on a stream", rawFrame(http2.FramePing, 0, 1, "12345678"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.7 PING of another size", rawFrame(http2.FramePing, 0, 0, "123456"), "GOAWAY FRAME_SIZE_ERROR", true},
		{"6.8 GOAWAY on a stream", rawFrame(http2.FrameGoAway, 0, 1, "\x00\x00\x00\x00\x00\x00\x00\x00"), "GOAWAY PROTOCOL_ERROR", true},
		{"6.9 WINDOW_UPDATE by 0", func(c *client) { c.fr.WriteWindowUpdate(0, 0) }, "GOAWAY PROTOCOL_ERROR", true},
		{"6.9 WINDOW_UPDATE of a stream by 0", opened(func(c *client) { c.fr.WriteWindowUpdate(1, 0) }), "RST PROTOCOL_ERROR", false},
		{"6.9 WINDOW_UPDATE of another size", rawFrame(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x01"), "GOAWAY FRAME_SIZE_ERROR", true},
		{"6.9.1 the connection's window overflows", func(c *client) { c.fr.WriteWindowUpdate(0, frame.MaxWindow) }, "GOAWAY FLOW_CONTROL_ERROR", true},
		{"6.9.1 a stream's window overflows", opened(func(c *client) { c.fr.WriteWindowUpdate(1, frame.MaxWindow) }), "RST FLOW_CONTROL_ERROR", false},
		{"6.9.2 a new initial window overflows a stream's", opened(func(c *client) {
			c.fr.WriteWindowUpdate(1, frame.MaxWindow-65535)
			c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65536})
		}), "GOAWAY FLOW_CONTROL_ERROR", true},
		{"6.10 CONTINUATION on stream 0", rawFrame(http2.FrameContinuation, 4, 0, ""), "GOAWAY PROTOCOL_ERROR", true},
		{"6.10 CONTINUATION behind END_HEADERS", func(c *client) { c.headers(1, false, post()...); c.fr.WriteContinuation(1, true, nil) }, "GOAWAY PROTOCOL_ERROR", true},

		{"8.1 a second HEADERS that does not end the stream", opened(func(c *client) { c.headers(1, false, "x: y") }), "RST PROTOCOL_ERROR", false},
		{"8.1 a pseudo field in a trailer", opened(func(c *client) { c.headers(1, true, ":path: /x") }), "RST PROTOCOL_ERROR", false},
		{"8.1 trailers", opened(func(c *client) {
			rawFrame(http2.FrameData, 0, 1, "b")(c)
			c.headers(1, true, "x-sum: 1", "content-length: 5")
		}),
			"200 POST /p host=a.example path=/p length=-1 body=b trailer x-sum=1", false},
		{"8.1.1 more content than its length", func(c *client) {
			c.headers(1, false, post("content-length: 1")...)
			rawFrame(http2.FrameData, 1, 1, "xx")(c)
		}, "RST PROTOCOL_ERROR", false},
		{"8.1.1 less content than its length", func(c *client) {
			c.headers(1, false, post("content-length: 3")...)
			rawFrame(http2.FrameData, 1, 1, "xx")(c)
		}, "RST PROTOCOL_ERROR", false},
		{"8.1.1 less content, and a trailer", func(c *client) {
			c.headers(1, false, post("content-length: 3")...)
			rawFrame(http2.FrameData, 0, 1, "xx")(c)
			c.headers(1, true, "x: y")
		}, "RST PROTOCOL_ERROR", false},
		{"8.1.1 content as long as it says", func(c *client) {
			c.headers(1, false, post("content-length: 2")...)
			rawFrame(http2.FrameData, 1, 1, "xx")(c)
		},
			"200 POST /p host=a.example path=/p length=2 body=xx", false},
		{"8.2.2 te: trailers", request(true, with(get, "te: trailers")...), "200 GET / host=a.example path=/ length=0", false},
		{"8.2.3 cookies are put together", request(true, with(get, "cookie: a=1", "x: y", "cookie: b=2", "cookie: c=3")...),
			"200 GET / host=a.example path=/ length=0 cookie=a=1; b=2; c=3 x=y", false},
		{"8.3.1 Host instead of :authority", request(true, with(without(get, ":authority"), "host: b.example")...), "200 GET / host=b.example", false},
		{"8.3.1 Host that says the same", request(true, with(get, "host: A.example")...), "200 GET /", false},
		{"8.3.1 no host at all", request(true, without(get, ":authority")...), "400", false},
		{"8.3.1 user in the authority", request(true, with(without(get, ":authority"), ":authority: u@a")...), "400", false},
		{"8.3.1 another scheme", request(true, with(without(get, ":scheme"), ":scheme: ftp")...), "400", false},
		{"8.3.1 OPTIONS *", request(true, with([]string{":method: OPTIONS", ":path: *", ":scheme: http", ":authority: a"})...), "400", false},
		{"8.5 CONNECT", request(true, ":method: CONNECT", ":authority: a:1"), "400", false},
		{"8441 3 ENABLE_CONNECT_PROTOCOL is 0 or 1", rawFrame(http2.FrameSettings, 0, 0, "\x00\x08\x00\x00\x00\x02"), "GOAWAY PROTOCOL_ERROR", true},
		{"8441 4 a protocol without CONNECT", request(true, with([]string{":protocol: websocket"}, get...)...), "RST PROTOCOL_ERROR", false},
		{"8441 4 no path", request(false, without(connect, ":path")...), "RST PROTOCOL_ERROR", false},
		{"8441 4 an empty path", request(false, with(without(connect, ":path"), ":path: ")...), "RST PROTOCOL_ERROR", false},
		{"8441 4 no scheme", request(false, without(connect, ":scheme")...), "RST PROTOCOL_ERROR", false},
		{"8441 4 two protocols", request(false, with(connect, ":protocol: websocket")...), "RST PROTOCOL_ERROR", false},
		{"8441 4 a length", request(false, with(connect, "content-length: 5")...), "RST PROTOCOL_ERROR", false},
		{"8441 4 Connection and Upgrade", request(false, with(connect, "connection: upgrade", "upgrade: websocket")...), "RST PROTOCOL_ERROR", false},
		{"8441 4 no host at all", request(false, without(connect, ":authority")...), "400", false},
		{"8441 4 another protocol", request(false, with(without(connect, ":protocol"), ":protocol: connect-udp")...), "501", false},
		{"8441 4 an empty protocol", request(false, with(without(connect, ":protocol"), ":protocol: ")...), "501", false},
		{"8441 4 somebody who says yes and does not switch", request(false, connect...), "502", false},
		{"9110 TRACE", request(true, with(without(get, ":method"), ":method: TRACE")...), "400", false},

		{"7541 2.3.3 an index of nothing", fieldBlock(0x82, 0x86, 0x84, 0xff, 0x7f), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 6.1 index 0", fieldBlock(0x80), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 4.2 a table larger than allowed", fieldBlock(0x3f, 0xe2, 0x1f, 0x82), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 5.2 padding longer than 7 bits", fieldBlock(0x82, 0x86, 0x84, 0x00, 0x01, 'x', 0x82, 0x1f, 0xff), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 5.2 EOS in a Huffman string", fieldBlock(0x82, 0x86, 0x84, 0x00, 0x01, 'x', 0x84, 0xff, 0xff, 0xff, 0xff), "GOAWAY COMPRESSION_ERROR", true},
		{"7541 5.2 a string that is cut", fieldBlock(0x82, 0x86, 0x84, 0x00, 0x05, 'x'), "GOAWAY COMPRESSION_ERROR", true},
	}...)
}

// Every MUST that a client can break is answered as its section says, and what
// concerns one stream leaves the others alone.
func TestRFC9113(t *testing.T) {
	r := newRig(t, Options{}, echo)
	for _, c := range rulings() {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			var cl *client
			if c.send == nil {
				cl = r.raw()
				preface := http2.ClientPreface
				if strings.HasSuffix(c.name, "another preface") {
					preface = "PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n"
				}
				io.WriteString(cl.nc, preface)
				cl.headers(1, true, get...)
			} else {
				cl = r.dial()
				c.send(cl)
			}
			if c.want != "" {
				got := cl.outcome(1)
				fits := false
				for want := range strings.SplitSeq(c.want, "|") {
					fits = fits || strings.HasPrefix(got, want)
				}
				if !fits {
					t.Fatalf("got %q, want %q", got, c.want)
				}
			}
			if c.over {
				if last := cl.outcome(1); last != "closed" {
					t.Errorf("the connection goes on: %q", last)
				}
			} else if !cl.alive(101) {
				t.Error("the connection is dead")
			}
		})
	}
}
