package frame_test

import (
	"bytes"
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"quayside.io/proxy/frame"
)

// Frames as one side writes them, and as the other reads them.
func Example() {
	out := frame.NewOutput(&frame.Buffers{})
	block := frame.AppendField(frame.AppendStatus(nil, 200), []byte("server"), []byte("quayside"))
	out.Block(1, block)
	b := frame.AppendGoAway(out.Take(), 1, http2.ErrCodeNo, "bye")

	in := frame.NewInput(bytes.NewReader(b), 1024, func(f hpack.HeaderField) { fmt.Println("  " + f.Name + ": " + f.Value) })
	for range 2 {
		head, f, err := in.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(head.Type, "on stream", head.StreamID)
		if h, ok := f.(*http2.HeadersFrame); ok {
			if _, err := in.Decoder.Write(h.HeaderBlockFragment()); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// HEADERS on stream 1
	//   :status: 200
	//   server: quayside
	// GOAWAY on stream 0
}
