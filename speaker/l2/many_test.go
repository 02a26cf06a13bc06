package l2

import (
	"net/netip"
	"testing"
)

// A takeover asks for every address of a dead node at once. A question that is
// lost on our own side would make a living owner look dead.
func TestNoneOfManyQuestionsIsLost(t *testing.T) {
	if !inNamespace(t, "tc") {
		return
	}
	const many = 5000
	l := newLAN(t)
	l.run("ip", "route", "add", "local", "10.1.0.0/16", "dev", "lo")
	a := startAnnouncer(t)
	a.awaitLAN(t)
	questions := make([]Question, many)
	for i := range questions {
		questions[i].Address = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	}
	for _, rate := range []string{"100mbit", "10mbit"} {
		run(t, "tc", "qdisc", "replace", "dev", "lan0", "root", "tbf", "rate", rate, "burst", "2kb", "limit", "1mb")
		found, err := a.Probe(t.Context(), questions, Takeover())
		if err != nil {
			t.Fatal(err)
		}
		if lost := many - len(found); lost > 0 {
			t.Errorf("by a link of %s %d of %d addresses that a host answers for seem to be free", rate, lost, many)
		}
	}
}
