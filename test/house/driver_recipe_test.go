package house

import "testing"

// A new announcing driver is what speaker/doc.go says: a field of the plan, a
// package, and its place in the component. This one writes a list.
func TestANewAnnouncingDriver(t *testing.T) {
	const decides = `package announce

// decideList lists what this node may announce at all.
func (k *compiler) decideList() {
	for _, h := range k.holdings {
		k.plan.List = append(k.plan.List, h.addr)
	}
}
`
	const does = `// Package list keeps a list.
package list

import (
	"context"
	"net/netip"
	"sync/atomic"
)

// Want is what is to be on the list.
type Want struct{ Addresses []netip.Addr }

// Driver keeps the list.
type Driver struct {
	want atomic.Pointer[Want]
	list atomic.Pointer[Want]
	wake chan struct{}
}

// New returns a Driver with an empty list.
func New() *Driver { return &Driver{wake: make(chan struct{}, 1)} }

// Set declares what is wanted.
func (d *Driver) Set(w *Want) {
	d.want.Store(w)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run keeps the list until ctx ends.
func (d *Driver) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.wake:
			d.list.Store(d.want.Load())
		}
	}
}

// List is what stands on it.
func (d *Driver) List() *Want { return d.list.Load() }
`
	const proves = `package speaker

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/test/netns"
	"quayside.io/test/objects"
)

// It works although layer 2 cannot.
func TestTheNewDriverAnnounces(t *testing.T) {
	s, _ := lone(t)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	var found atomic.Bool
	go func() {
		defer stop()
		for ; ctx.Err() == nil && !found.Load(); time.Sleep(time.Millisecond) {
			w := s.list.List()
			found.Store(w != nil && slices.Contains(w.Addresses, netip.MustParseAddr(objects.VIP(0))))
		}
	}()
	netns.Without(t, unix.CAP_NET_RAW, func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if !found.Load() {
		t.Error("nothing is on the list")
	}
}
`
	edits := map[string][]line{
		"speaker/announce/announce.go": {
			{"\t// Problems, sorted.\n", "\t// List is what this node may announce.\n\tList []netip.Addr\n"},
			{"\tk.plan.Status = k.status()\n", "\tk.decideList()\n"},
		},
		"speaker/speaker.go": {
			{"\t\"quayside.io/speaker/members\"\n", "\t\"quayside.io/speaker/list\"\n"},
			{"\tbgp      *bgp.Speaker\n", "\tlist *list.Driver\n"},
			{"\t\tbgp:   bgp.New(", "\t\tlist: list.New(),\n"},
			{"{\"BGP\", s.bgp.Run}, ", "{\"list\", s.list.Run}, "},
		},
		"speaker/loop.go": {
			{"\t\"quayside.io/speaker/members\"\n", "\t\"quayside.io/speaker/list\"\n"},
			{"\t\ts.carryOut(out)\n", "\t\ts.list.Set(&list.Want{Addresses: out.Plan.List})\n"},
		},
	}
	files := map[string]string{
		"speaker/announce/list.go": decides, "speaker/list/list.go": does, "speaker/new_driver_test.go": proves,
	}
	testOverlaid(t, edits, files, "TestTheNewDriverAnnounces", "speaker")
}
