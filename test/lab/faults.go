package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// faults are what the switch does wrong on purpose. The zero value is a
// healthy LAN. They are declared, and the ruleset is made from the whole.
type faults struct {
	silent map[string]bool // members none of whose packets pass, either way
	loss   map[string]int  // percent of packets from and to a member that vanish
	splits []*split
	cuts   []*string // match expressions of nft whose packets vanish everywhere
}

// split keeps two groups of members from hearing each other.
type split struct {
	from, to []string
	oneWay   bool
}

func (f *faults) setSilent(member string, on bool) {
	if f.silent == nil {
		f.silent = map[string]bool{}
	}
	f.silent[member] = on
	if !on {
		delete(f.silent, member)
	}
}

func (f *faults) setLoss(member string, percent int) {
	if f.loss == nil {
		f.loss = map[string]int{}
	}
	f.loss[member] = percent
	if percent == 0 {
		delete(f.loss, member)
	}
}

// ruleset is an nft transaction that puts exactly these faults in force.
func (f *faults) ruleset() string {
	var b strings.Builder
	// Declare, delete, declare: no error whether it was there or not.
	b.WriteString("table bridge faults\ndelete table bridge faults\n")
	b.WriteString("table bridge faults {\n chain forward {\n  type filter hook forward priority -300; policy accept;\n")
	for _, m := range slices.Sorted(maps.Keys(f.silent)) {
		fmt.Fprintf(&b, "  iifname %q drop\n  oifname %q drop\n", m, m)
	}
	for _, s := range f.splits {
		fmt.Fprintf(&b, "  iifname %s oifname %s drop\n", nftSet(s.from), nftSet(s.to))
		if !s.oneWay {
			fmt.Fprintf(&b, "  iifname %s oifname %s drop\n", nftSet(s.to), nftSet(s.from))
		}
	}
	for _, c := range f.cuts {
		fmt.Fprintf(&b, "  %s drop\n", *c)
	}
	for _, m := range slices.Sorted(maps.Keys(f.loss)) {
		fmt.Fprintf(&b, "  iifname %q numgen random mod 100 < %d drop\n", m, f.loss[m])
		fmt.Fprintf(&b, "  oifname %q numgen random mod 100 < %d drop\n", m, f.loss[m])
	}
	b.WriteString(" }\n}\n")
	return b.String()
}

func nftSet(members []string) string {
	quoted := make([]string, len(members))
	for i, m := range members {
		quoted[i] = fmt.Sprintf("%q", m)
	}
	return "{ " + strings.Join(quoted, ", ") + " }"
}
