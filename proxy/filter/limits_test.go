package filter

import (
	"hash/maphash"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quayside.io/proxy/exchange"
)

// bucket is the stupid twin of one client in a Limiter: credit flows in with time.
type bucket struct {
	level time.Duration
	at    time.Time
}

func (b *bucket) allow(now time.Time, interval, credit time.Duration) bool {
	b.level = min(credit+interval, b.level+now.Sub(b.at))
	b.at = now
	if b.level < interval {
		return false
	}
	b.level -= interval
	return true
}

func TestLimiterAgainstItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLimiter(maphash.MakeSeed(), ways) // as many clients as there is room for
		l.open()
		interval := time.Duration(rapid.IntRange(1, 1000).Draw(t, "interval"))
		credit := interval * time.Duration(rapid.IntRange(0, 10).Draw(t, "burst"))
		now := time.Unix(1000, 0)
		twins := map[uint64]*bucket{}
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "pause")))
			client := rapid.Uint64Range(1, ways).Draw(t, "client") << 1
			twin := twins[client]
			if twin == nil {
				twin = &bucket{credit + interval, now}
				twins[client] = twin
			}
			if got, want := l.allow(client, now, interval, credit), twin.allow(now, interval, credit); got != want {
				t.Fatalf("client %d at %v: %v, want %v", client, now.UnixNano(), got, want)
			}
		}
	})
}

// Requests that come at the same time are all counted.
func TestLimiterCountsAtOnce(t *testing.T) {
	l := newLimiter(maphash.MakeSeed(), 1000)
	l.open()
	now := time.Unix(1000, 0)
	l.allow(42, now, time.Second, 99*time.Second)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if l.allow(42, now, time.Second, 99*time.Second) {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != 99 {
		t.Errorf("%d passed, want 99", passed.Load())
	}
}

// What is remembered of a million clients fits into 100 MB, and those of a quiet
// minute ago make room for others.
func TestAMillionClients(t *testing.T) {
	const clients = 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tools := NewTools(maphash.MakeSeed())
	tools.Limiter.open()
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	refused := func(now time.Time, step int) (n int) { // of those asked, once each, where one passes
		for i := 0; i < clients; i += step {
			if !tools.Limiter.allow(keyOf(tools.Limiter.seed, 1, address(i)), now, time.Second, 0) {
				n++
			}
		}
		return n
	}
	now := time.Unix(1000, 0)
	refused(now, 1)
	for i := range clients {
		tools.Connections.enter(keyOf(tools.Connections.seed, 1, address(i)), 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := after.HeapAlloc - before.HeapAlloc; used > 100<<20 {
		t.Errorf("%d clients take %d bytes", clients, used)
	}
	const some = 16
	// 2^20 places in sets of eight cannot hold all of a million, but most.
	if n := refused(now, some); n < clients/some*8/10 {
		t.Errorf("only %d of %d are remembered", n, clients/some)
	}
	if n := refused(now.Add(time.Minute), some); n > 0 {
		t.Errorf("%d of %d have not been forgotten after a minute", n, clients/some)
	}
	runtime.KeepAlive(tools)
}

// What is counted under something that the client sends is given back, whatever has
// become of that since.
func TestCountedByAField(t *testing.T) {
	key, err := ParseTemplate("$http_x_key")
	if err != nil {
		t.Fatal(err)
	}
	tools := NewTools(maphash.MakeSeed())
	chain := Compile(&Settings{Limits: &Limits{Connections: 1, Key: key}}, Host{}, tools)
	begin := func(key string) (*exchange.Exchange, bool) {
		ex := &exchange.Exchange{}
		ex.Request.Client = netip.MustParseAddrPort("192.0.2.1:1")
		if key != "" {
			ex.Request.Header.Set("X-Key", key)
		}
		return ex, chain.Request(ex)
	}
	first, passes := begin("a")
	if !passes {
		t.Fatal("the first is refused")
	}
	if _, passes := begin("a"); passes {
		t.Error("a second of one key passes")
	}
	if _, passes := begin("b"); !passes {
		t.Error("another key is refused")
	}
	for range 2 {
		if _, passes := begin(""); !passes {
			t.Error("who has no key is refused")
		}
	}
	first.Request.Header.Set("X-Key", "c")
	chain.Finished(first)
	if _, passes := begin("a"); !passes {
		t.Error("the key is not given back")
	}
}

// A clock that is set back leaves no client owing what it never asked, and requests that
// are counted a little late find what was counted before them.
func TestLimiterWhenTheClockIsSetBack(t *testing.T) {
	l := newLimiter(maphash.MakeSeed(), ways)
	l.open()
	now := time.Unix(1_000_000, 0)
	full := func() {
		for range 3 {
			l.allow(2, now, time.Second, 2*time.Second)
		}
		if l.allow(2, now, time.Second, 2*time.Second) {
			t.Fatal("a fourth request passes at once")
		}
	}
	full()
	if l.allow(2, now.Add(-10*time.Second), time.Second, 2*time.Second) {
		t.Error("a request that is counted late passes")
	}
	full()
	now = now.Add(-time.Hour)
	if !l.allow(2, now, time.Second, 2*time.Second) {
		t.Error("an hour back, the client is refused until the clock is where it was")
	}
	l.allow(2, now, time.Second, 2*time.Second)
	l.allow(2, now, time.Second, 2*time.Second)
	if l.allow(2, now, time.Second, 2*time.Second) {
		t.Error("then it is not limited any more")
	}
}
