package upstream

import (
	"cmp"
	"time"
)

// Keeping is how connections to endpoints are kept for the next request. Zeros are
// those of Options.
type Keeping struct {
	MaxIdle     int // to one endpoint; negative: none is kept
	MaxRequests int // over one connection
	IdleTimeout time.Duration
	MaxLifetime time.Duration
	MaxOpen     int // connections to all endpoints together
}

// SetKeeping declares it. It holds for the connections that are there, too, the next
// time that they are looked at.
func (e *Engine) SetKeeping(k Keeping) {
	o := e.options
	o.MaxIdle = max(cmp.Or(k.MaxIdle, o.MaxIdle), 0)
	o.MaxRequests = cmp.Or(k.MaxRequests, o.MaxRequests)
	o.IdleTimeout = cmp.Or(k.IdleTimeout, o.IdleTimeout)
	o.MaxLifetime = cmp.Or(k.MaxLifetime, o.MaxLifetime)
	o.MaxOpen = cmp.Or(k.MaxOpen, o.MaxOpen)
	e.keeping.Store(&o)
}
