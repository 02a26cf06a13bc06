package l2

import (
	"net/netip"
	"os"
	"testing"

	"quayside.io/test/busy"
)

// A takeover asks for every address of a dead node at once. A question that is
// lost on our own side would make a living owner look dead.
func TestNoneOfManyQuestionsIsLost(t *testing.T) {
	if !inNamespace(t, "tc") {
		return
	}
	const many = 5000
	l, a := onLAN(t)
	l.run("ip", "route", "add", "local", "10.1.0.0/16", "dev", "lo")
	questions := make([]Question, many)
	for i := range questions {
		questions[i].Address = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	}
	standstill := busy.Standstill(t)
	for _, rate := range []string{"100mbit", "10mbit"} {
		run(t, "tc", "qdisc", "replace", "dev", "lan0", "root", "tbf", "rate", rate, "burst", "2kb", "limit", "1mb")
		for range 10 {
			before := standstill()
			found, err := a.Probe(t.Context(), questions, Takeover())
			if err != nil {
				t.Fatal(err)
			}
			lost, late := many-len(found), standstill()-before
			if lost == 0 {
				break
			}
			if late < Takeover().Every/4 { // else an answer may have come too late: ask again
				t.Errorf("by a link of %s %d of %d addresses that a host answers for seem to be free", rate, lost, many)
				break
			}
			t.Logf("by a link of %s %d answers were missed while the machine stood still for %v", rate, lost, late)
		}
	}
}

// A kernel bounds the groups of one socket, so many addresses need many sockets.
// They go with the addresses.
func TestSocketsGoWithTheirGroups(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	newLAN(t)
	links, err := readLinks()
	if err != nil || len(links) != 1 {
		t.Fatal(links, err)
	}
	l := links[0]
	r := newResponder(responderKey{l.index, l.mac, l.Name}, l, &counters{}, &counters{}, nil)
	defer r.close()
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	set := func(from, to int) {
		w := &tables{v6: map[[16]byte]struct{}{}}
		for i := from; i < to; i++ {
			w.v6[[16]byte{0x20, 1, 0xd, 0xb8, 14: byte(i >> 8), 15: byte(i)}] = struct{}{}
		}
		if err := r.set(w); err != nil {
			t.Fatal(err)
		}
	}
	set(0, 1)
	few := open()
	set(0, 10000)
	t.Logf("%d groups are held by %d sockets", len(r.joined), len(r.groups))
	if len(r.groups) < 2 {
		t.Fatal("one socket holds them all: they prove nothing")
	}
	set(9999, 10000)
	if now := open(); now > few || len(r.joined) != 1 {
		t.Errorf("%d groups are left, with %d open files; %d in the beginning", len(r.joined), now, few)
	}
}
