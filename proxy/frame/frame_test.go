package frame

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

func TestBudget(t *testing.T) {
	var b Budget
	now := time.Unix(1, 0)
	for i := range budgetSize {
		if !b.Spend(1, now) {
			t.Fatalf("refused after %d", i)
		}
	}
	if b.Spend(1, now) {
		t.Error("there was no end")
	}
	b.Earn(1 << 30)
	if !b.Spend(budgetSize, now) || b.Spend(1, now) {
		t.Error("what is earned is not bounded")
	}
	if !b.Spend(perSecond-10, now.Add(time.Second)) {
		t.Error("time gives nothing")
	}
}

// Our field blocks say to a decoder what they were made of, with names in lower
// case, and put nothing into its table.
func TestFieldBlocks(t *testing.T) {
	names := []string{"X-New", strings.Repeat("n", 300), "Strict-Transport-Security"}
	for i := range 61 {
		b := appendInt(nil, indexed, 7, i+1)
		fields, err := hpack.NewDecoder(4096, nil).DecodeFull(b)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.ToUpper(strings.TrimPrefix(fields[0].Name, ":")))
		if at := staticIndex(fields[0].Name); at != 0 && at != i+1 {
			t.Errorf("%s has index %d, not %d", fields[0].Name, i+1, at)
		}
	}
	dec := hpack.NewDecoder(0, nil)
	for status := 100; status < 600; status++ {
		fields, err := dec.DecodeFull(AppendStatus(nil, status))
		if err != nil || len(fields) != 1 || fields[0].Name != ":status" || fields[0].Value != fmt.Sprint(status) {
			t.Fatalf("%d: %v, %v", status, fields, err)
		}
	}
	for _, name := range names {
		for _, value := range []string{"", "v", strings.Repeat("w", 20_000)} {
			fields, err := dec.DecodeFull(AppendField(nil, []byte(name), []byte(value)))
			if err != nil || len(fields) != 1 || fields[0].Name != strings.ToLower(name) || fields[0].Value != value {
				t.Fatalf("%s: %v, %v", name, fields, err)
			}
			if fields[0].Sensitive != (name == "SET-COOKIE" || name == "COOKIE" || name == "AUTHORIZATION") {
				t.Errorf("%s is sensitive: %v", name, fields[0].Sensitive)
			}
		}
	}
}

// A request's pseudo fields, for a decoder.
func TestAppendRequest(t *testing.T) {
	for _, method := range []string{"GET", "POST", "PROPFIND"} {
		for secure, scheme := range map[bool]string{false: "http", true: "https"} {
			block := AppendRequest(nil, []byte(method), []byte("a.example"), []byte("/x?y"), secure)
			fields, err := hpack.NewDecoder(0, nil).DecodeFull(block)
			var got []string
			for _, f := range fields {
				got = append(got, f.Name+" "+f.Value)
			}
			if want := []string{":method " + method, ":scheme " + scheme, ":path /x?y", ":authority a.example"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		}
	}
}

// A stream that is forgotten while it waits in the queue leaves those around it
// there, and may be used again.
func TestForgottenInTheQueue(t *testing.T) {
	for gone := range 3 {
		o := NewOutput(new(Buffers))
		o.Window = 1 << 20
		o.Pending = make([]byte, batch) // no room
		streams := make([]Sender, 3)
		for i := range streams {
			streams[i] = Sender{ID: uint32(2*i + 1), Window: 1 << 20}
			o.Send(&streams[i], Part{Data: []byte("x"), Last: true})
		}
		if o.Next() != nil {
			t.Fatal("there was room")
		}
		o.Forget(&streams[gone])
		streams[gone] = Sender{ID: 9, Window: 1 << 20}
		o.Take()
		o.Send(&streams[gone], Part{Data: []byte("y"), Last: true})
		var got []uint32
		for s := o.Next(); s != nil; s = o.Next() {
			got = append(got, s.ID)
		}
		want := append(slices.Delete([]uint32{1, 3, 5}, gone, gone+1), 9)
		if !slices.Equal(got, want) {
			t.Errorf("without %d: %v, want %v", gone, got, want)
		}
	}
}

// sent is what a reader of the output has seen of one stream.
type sent struct {
	data  []byte
	heads int
	ended bool
}

// Whatever the order of sending, windows growing and streams being forgotten: no
// window is overdrawn, what was handed over arrives in order, and all of it does
// once the windows allow it.
func TestOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := NewOutput(new(Buffers))
		o.Window = 0
		connection, windows := int64(0), map[uint32]int64{}
		streams, want, got := map[uint32]*Sender{}, map[uint32]*sent{}, map[uint32]*sent{}
		drain := func() {
			for o.Next() != nil {
			}
			read(t, o.Take(), got, func(id uint32, n int) {
				connection -= int64(n)
				windows[id] -= int64(n)
				if connection < 0 || windows[id] < 0 {
					t.Fatalf("stream %d overdraws a window", id)
				}
			})
		}
		widen := func(s *Sender, n int64) {
			connection, windows[s.ID] = connection+n, windows[s.ID]+n
			if err := o.Widen(uint32(n), maps.Values(streams)); err != nil || !o.WidenOne(s, uint32(n)) {
				t.Fatalf("%d bytes more are refused: %v", n, err)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := uint32(rapid.IntRange(0, 4).Draw(t, "stream")*2 + 1)
			s := streams[id]
			if s == nil {
				s = &Sender{ID: id}
				streams[id], want[id], got[id] = s, &sent{}, &sent{}
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				if s.Due || want[id].ended {
					continue
				}
				p := Part{Data: bytes.Repeat([]byte{byte(len(want[id].data))}, rapid.IntRange(0, 40_000).Draw(t, "size")), Last: rapid.Bool().Draw(t, "last")}
				if want[id].heads == 0 {
					p.Head = []byte{indexed | 8}
					want[id].heads++
				}
				p.Apart = rapid.Bool().Draw(t, "apart")
				if p.Last && rapid.Bool().Draw(t, "trailer") {
					p.Trailer = []byte{indexed | 8}
					want[id].heads++
				}
				want[id].data = append(want[id].data, p.Data...)
				want[id].ended = p.Last
				o.Send(s, p)
			case 2:
				widen(s, int64(rapid.IntRange(1, 50_000).Draw(t, "window")))
			case 3:
				drain()
			}
		}
		for _, s := range streams {
			widen(s, 1<<20)
		}
		for range 100 {
			drain()
		}
		for id := range streams {
			if !bytes.Equal(got[id].data, want[id].data) || got[id].heads != want[id].heads || got[id].ended != want[id].ended {
				t.Fatalf("stream %d: %d bytes, %d heads, ended %v", id, len(got[id].data), got[id].heads, got[id].ended)
			}
		}
	})
}

// read takes frames apart.
func read(t *rapid.T, b []byte, into map[uint32]*sent, data func(id uint32, n int)) {
	fr := http2.NewFramer(nil, bytes.NewReader(b))
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		s := into[f.Header().StreamID]
		if s.ended {
			t.Fatalf("%v behind the end", f)
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			s.data, s.ended = append(s.data, f.Data()...), f.StreamEnded()
			data(f.StreamID, len(f.Data()))
		case *http2.HeadersFrame:
			s.heads, s.ended = s.heads+1, f.StreamEnded()
		}
	}
}

// A window is as large as RFC 9113 allows, and no byte larger, in whichever way it grows.
func TestWindowsHaveABound(t *testing.T) {
	const room = MaxWindow - firstWindow
	none := maps.Values(map[int]*Sender{})
	for _, more := range []uint32{room, room + 1} {
		o, s := NewOutput(new(Buffers)), &Sender{ID: 1, Window: firstWindow}
		if err := o.Widen(more, none); (err == nil) != (more == room) {
			t.Errorf("the connection's, by %d: %v", more, err)
		}
		if ok := o.WidenOne(s, more); ok != (more == room) {
			t.Errorf("a stream's, by %d: %v", more, ok)
		}
		s.Window = firstWindow + 1
		if err := o.Resize(firstWindow+more-1, slices.Values([]*Sender{s})); (err == nil) != (more == room) {
			t.Errorf("what streams begin with, by %d: %v", more-1, err)
		}
	}
}

// A peer that grants next to nothing makes no progress, one that grants a little does.
func TestStuck(t *testing.T) {
	o := NewOutput(new(Buffers))
	s := &Sender{ID: 1}
	o.Send(s, Part{Data: make([]byte, 3*leastPace)})
	for _, c := range []struct {
		granted int64
		stuck   bool
	}{{0, true}, {1, true}, {leastPace - 1, true}, {leastPace, false}, {0, true}, {leastPace, false}} {
		o.WidenOne(s, uint32(c.granted))
		for o.Next() != nil {
		}
		if got := s.Stuck(); got != c.stuck {
			t.Errorf("%d bytes granted, %d left: stuck is %v", c.granted, len(s.part.Data), got)
		}
	}
	if s.Due || s.Stuck() {
		t.Error("nothing is due, and it is stuck")
	}
}
