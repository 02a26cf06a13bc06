package upstream

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/exchange"
)

const (
	// writeAtOnce is what the reader of a body writes itself. Smaller pieces are
	// handed to a second goroutine: it writes whatever has gathered since its last
	// write, so that a client which sends byte by byte costs no write for each,
	// and the last byte before a pause still does not wait.
	writeAtOnce = 2 << 10
	// minGatherRoom is the least space worth a read from the client.
	minGatherRoom = 1 << 10
)

// gather is the way of a request body from one reader, which fills buf, to the
// connection. Bytes before sent are written, those before read have come, and
// the reader may be waiting for more behind them.
type gather struct {
	conn    *conn
	chunked bool
	timeout time.Duration
	sentAt  atomic.Int64 // unix nanoseconds of the last write

	mu         sync.Mutex
	buf        []byte
	sent, read int

	writing sync.Mutex // held for a write; it guards the three below
	err     error      // of a write; none follows it
	pieces  net.Buffers
	frame   []byte // what stands before and behind the data of a chunk

	wake  chan struct{} // nil until there is a second goroutine
	ended chan struct{}
}

func (g *gather) room() ([]byte, error) {
	g.mu.Lock()
	full := g.sent < g.read && len(g.buf)-g.read < minGatherRoom
	g.mu.Unlock()
	if full {
		if err := g.flush(); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent == g.read {
		g.sent, g.read = 0, 0
	}
	return g.buf[g.read:], nil
}

func (g *gather) add(n int, last bool) error {
	g.mu.Lock()
	g.read += n
	waiting := g.read - g.sent
	g.mu.Unlock()
	if last {
		return nil
	}
	if waiting >= writeAtOnce && g.writing.TryLock() {
		defer g.writing.Unlock()
		return g.write(nil, false)
	}
	if waiting == 0 {
		return nil
	}
	if g.wake == nil {
		g.wake, g.ended = make(chan struct{}, 1), make(chan struct{})
		go g.follow(g.wake)
	}
	select {
	case g.wake <- struct{}{}:
	default: // it has been told already
	}
	return nil
}

// follow is the second goroutine.
func (g *gather) follow(wake <-chan struct{}) {
	defer close(g.ended)
	for range wake {
		if g.flush() != nil {
			return // the reader meets the error with its next write
		}
	}
}

// end stops the second goroutine. A write of its that hangs ends with its
// deadline or with the connection.
func (g *gather) end() {
	if g.wake != nil {
		close(g.wake)
		<-g.ended
	}
}

// flush writes what is there.
func (g *gather) flush() error {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.write(nil, false)
}

func (g *gather) finish(t *exchange.Trailer) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.write(t, true)
}

// write needs the lock of that name.
func (g *gather) write(t *exchange.Trailer, last bool) error {
	if g.err != nil {
		return g.err
	}
	g.mu.Lock()
	data := g.buf[g.sent:g.read]
	g.mu.Unlock()
	g.pieces = g.pieces[:0]
	if !g.chunked {
		g.pieces = append(g.pieces, data)
	} else {
		g.chunk(data, t, last)
	}
	g.err = g.send()
	g.mu.Lock()
	g.sent += len(data) // where there was nothing to write, room may have begun anew
	g.mu.Unlock()
	return g.err
}

// chunk makes data a chunk of its own, with the last chunk and the trailer
// behind it where it is the last.
func (g *gather) chunk(data []byte, t *exchange.Trailer, last bool) {
	f := g.frame[:0]
	if len(data) > 0 {
		f = append(strconv.AppendInt(f, int64(len(data)), 16), "\r\n"...)
	}
	head := len(f)
	if len(data) > 0 {
		f = append(f, "\r\n"...)
	}
	if last {
		f = append(f, "0\r\n"...)
		for _, field := range t.Header.Fields() {
			f = appendField(f, field.Name, field.Value)
		}
		f = append(f, "\r\n"...)
	}
	g.frame = f
	g.pieces = append(g.pieces, f[:head], data, f[head:])
}

func (g *gather) cut() { g.conn.Close() }

func (g *gather) progress() time.Time { return time.Unix(0, g.sentAt.Load()) }

// waits: the front end has waited as long as a client may be silent.
func (g *gather) waits() bool { return false }

func (g *gather) send() error {
	size := 0
	for _, p := range g.pieces {
		size += len(p)
	}
	if size == 0 {
		return nil
	}
	if err := g.conn.SetWriteDeadline(time.Now().Add(g.timeout)); err != nil {
		return err
	}
	err := g.conn.writePieces(g.pieces)
	g.sentAt.Store(time.Now().UnixNano())
	return err
}

var _ sink = (*gather)(nil)
