package filter

import (
	"cmp"
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go4.org/netipx"

	"quayside.io/proxy/exchange"
)

// limiterKeys is how many clients a Limiter keeps apart: 16 MiB.
const limiterKeys = 1 << 20

// Limiter counts the requests of clients, for all routes, in a table of fixed size
// without locks. What it holds of a client is one time: when the client has paid
// for all it has asked (the theoretical arrival time of GCRA, which is a token
// bucket). A client whose time has passed is as good as new, so its place is free.
// When no place is free, the client that owes least is forgotten.
type Limiter struct {
	seed  maphash.Seed
	keys  int
	made  sync.Once
	slots []slot // made when the first limit is
}

// slot is one client. Two goroutines that take one over at once may count one
// request too few.
type slot struct {
	key  atomic.Uint64
	paid atomic.Int64 // unix nanoseconds
}

// ways is how many places a client may have in the table; together they fill two
// cache lines.
const ways = 8

// newLimiter returns a Limiter for about keys clients at a time, at least ways.
func newLimiter(seed maphash.Seed, keys int) *Limiter {
	return &Limiter{seed: seed, keys: (max(keys, ways) + ways - 1) / ways * ways}
}

// open makes the table. Whoever has no limits does not pay for it.
func (l *Limiter) open() { l.made.Do(func() { l.slots = make([]slot, l.keys) }) }

// maxLate is how much later than others a request may be counted that came before them.
const maxLate = time.Minute

// allow counts one request under key and reports whether it may pass: each costs
// its client interval, and credit is what may be owed. Who owes what nobody can has
// asked before the clock was set back, and is as good as new.
func (l *Limiter) allow(key uint64, now time.Time, interval, credit time.Duration) bool {
	key |= 1 // zero is a place never used
	at := int(key>>1%uint64(len(l.slots)/ways)) * ways
	s, ok := l.find(l.slots[at:at+ways], key)
	for {
		paid := s.paid.Load()
		from := now.UnixNano()
		if ok && paid-from <= int64(credit+interval+maxLate) {
			from = max(from, paid)
		}
		if from-now.UnixNano() > int64(credit) {
			return false
		}
		if s.paid.CompareAndSwap(paid, from+int64(interval)) {
			return true
		}
		ok = true
	}
}

// find returns the place of key, and whether it was there before.
func (l *Limiter) find(set []slot, key uint64) (*slot, bool) {
	least, owes := &set[0], int64(math.MaxInt64)
	for i := range set {
		s := &set[i]
		if s.key.Load() == key {
			return s, true
		}
		if paid := s.paid.Load(); paid < owes {
			least, owes = s, paid
		}
	}
	least.key.Store(key)
	return least, false
}

// Connections counts the requests under way of clients. It holds no client without
// one, so its size is bounded by theirs.
type Connections struct {
	seed   maphash.Seed
	shards [64]connections
}

type connections struct {
	mu    sync.Mutex
	count map[uint64]int
}

// newConnections returns a Connections without clients.
func newConnections(seed maphash.Seed) *Connections {
	c := &Connections{seed: seed}
	for i := range c.shards {
		c.shards[i].count = map[uint64]int{}
	}
	return c
}

// enter counts one more unless there are limit.
func (c *Connections) enter(key uint64, limit int) bool {
	s := &c.shards[key%uint64(len(c.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[key] >= limit {
		return false
	}
	s.count[key]++
	return true
}

func (c *Connections) leave(key uint64) {
	s := &c.shards[key%uint64(len(c.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[key]--; s.count[key] <= 0 {
		delete(s.count, key)
	}
}

// keyOf is what a client is counted by: its address, or the /64 of an IPv6 address,
// all of which one host may use. Zones are counted apart.
func keyOf(seed maphash.Seed, zone uint64, client netip.Addr) uint64 {
	var b [24]byte
	a := client.As16()
	n := 16
	if client.Is6() {
		n = 8
	}
	copy(b[:], a[:n])
	for i := range 8 {
		b[16+i] = byte(zone >> (8 * i))
	}
	return maphash.Bytes(seed, b[:])
}

// A counter tells under what an exchange is counted.
type counter struct {
	seed   maphash.Seed
	key    *Template // nil: the client's address
	place  Place
	exempt *netipx.IPSet
}

// of returns that in a zone; counted is false for who is not limited.
func (c *counter) of(ex *exchange.Exchange, zone uint64) (key uint64, counted bool) {
	client := ex.Request.Client.Addr()
	switch {
	case c.exempt.Contains(client):
		return 0, false
	case c.key == nil:
		return keyOf(c.seed, zone, client) | 1, true
	}
	n := len(ex.Scratch)
	ex.Scratch = c.key.appendField(ex.Scratch, ex, &c.place)
	value := ex.Scratch[n:]
	ex.Scratch = ex.Scratch[:n]
	return maphash.Bytes(c.seed, value) ^ zone | 1, len(value) > 0
}

// limits returns a filter for each limit that is set.
func limits(o *Limits, tools Tools) (c Chain) {
	by := &counter{seed: tools.Limiter.seed, key: o.Key, place: tools.Place, exempt: setOf(o.Exempt)}
	rate := func(kind string, n int, per time.Duration) {
		if n > 0 {
			interval := per / time.Duration(n)
			c = append(c, rateLimit(by, kind+o.Zone, interval, interval*time.Duration(n*max(cmp.Or(o.Burst, 5), 1)), o.Status, tools))
		}
	}
	if o.Connections > 0 {
		c = append(c, connectionLimit(by, "connections "+o.Zone, o.Connections, 0, o.ConnectionStatus, tools))
	}
	rate("second ", o.PerSecond, time.Second)
	rate("minute ", o.PerMinute, time.Minute)
	return c
}

// Rate bounds how often requests of one key may come: nginx's limit_req.
type Rate struct {
	// Zone is what others with that name count in, too, by the same key; nil: the client's
	// address.
	Zone string
	Key  *Template
	// Interval is the time between two requests, and Burst how many may come before theirs.
	Interval time.Duration
	Burst    int
	Status   int // of what is refused; 503
}

// Concurrency bounds how many requests of one key may be under way: nginx's limit_conn.
type Concurrency struct {
	Zone   string
	Key    *Template
	Most   int
	Status int // of what is refused; 503
}

// scriptLimits are the limits of s, whose zones have no others.
func scriptLimits(s *Script, tools Tools) (c Chain) {
	by := func(key *Template) *counter {
		return &counter{seed: tools.Limiter.seed, key: key, place: tools.Place, exempt: setOf(nil)}
	}
	if l := s.Concurrency; l != nil {
		c = append(c, connectionLimit(by(l.Key), "zone "+l.Zone, l.Most, 1, l.Status, tools))
	}
	for _, r := range s.Rates {
		c = append(c, rateLimit(by(r.Key), "zone "+r.Zone, r.Interval, r.Interval*time.Duration(r.Burst), r.Status, tools))
	}
	return c
}

func rateLimit(by *counter, name string, interval, credit time.Duration, status int, tools Tools) Filter {
	l := tools.Limiter
	l.open()
	zone := maphash.String(l.seed, name)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		key, counted := by.of(ex, zone)
		return !counted || l.allow(key, ex.Request.Received, interval, credit) || tooMuch(ex, status)
	}}
}

// connectionLimit counts requests as slot i of what they are counted under.
func connectionLimit(by *counter, name string, most, i, status int, tools Tools) Filter {
	k := tools.Connections
	zone := maphash.String(k.seed, name)
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			key, counted := by.of(ex, zone)
			switch {
			case !counted:
				return true
			case !k.enter(key, most):
				return tooMuch(ex, status)
			}
			ex.Counted[i] = key
			return true
		},
		Finished: func(ex *exchange.Exchange) {
			if ex.Counted[i] != 0 {
				k.leave(ex.Counted[i])
				ex.Counted[i] = 0
			}
		},
	}
}

func tooMuch(ex *exchange.Exchange, status int) bool {
	ex.Answer(cmp.Or(status, 503), "the client asks too much; try again later\n")
	return false
}
