package lab

import (
	"fmt"
	"sync"
)

// lan is the switch: a bridge in a namespace of its own, so that cutting a
// host off happens outside of that host, as it does in a rack.
type lan struct {
	ns     *netns
	subnet subnet
	has    families

	mu     sync.Mutex
	faults faults
}

func newLAN(name string, number subnet, has families) (*lan, error) {
	ns, err := newNetns(name)
	if err != nil {
		return nil, err
	}
	l := &lan{ns: ns, subnet: number, has: has}
	return l, firstError(
		// Where br_netfilter is loaded, bridged packets would run through this
		// namespace's IP hooks and its connection tracking.
		func() error {
			return ns.sysctl("?net/bridge/bridge-nf-call-iptables=0",
				"?net/bridge/bridge-nf-call-ip6tables=0", "?net/bridge/bridge-nf-call-arptables=0")
		},
		func() error {
			return ns.ip("link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
				"link set br0 up")
		},
	)
}

// plug puts a namespace on the LAN: eth0 there, a port called member here.
func (l *lan) plug(ns *netns, member string, host int) error {
	if err := l.plugBare(ns, member, "eth0", host); err != nil {
		return err
	}
	return ns.ip(l.has.each(
		fmt.Sprintf("addr add %s/%d dev eth0", l.subnet.addr4(host), lanBits4),
		fmt.Sprintf("addr add %s/%d dev eth0 nodad", l.subnet.addr6(host), lanBits6))...)
}

// plugBare is plug with another name of the interface and no address on it.
func (l *lan) plugBare(ns *netns, member, link string, host int) error {
	err := l.ns.ip(
		fmt.Sprintf("link add %s type veth peer name %s netns %s address %s", member, link, ns.name, l.subnet.mac(host)),
		fmt.Sprintf("link set %s master br0 up", member),
	)
	if err != nil {
		return err
	}
	// No DAD: the addresses are ours to give, and a second is a long time here.
	if err := ns.sysctl("?net/ipv6/conf/"+link+"/accept_dad=0", "?net/ipv6/conf/"+link+"/accept_ra=0"); err != nil {
		return err
	}
	return ns.ip("link set " + link + " up")
}

// unplug removes a port. The kernel would, when the namespace at its other end
// goes, but takes its time, and the name may be wanted again at once.
func (l *lan) unplug(member string) error { return l.ns.ip("link del " + member) }

// carrier switches the port of member off or on.
func (l *lan) carrier(member string, on bool) error {
	state := "down"
	if on {
		state = "up"
	}
	return l.ns.ip(fmt.Sprintf("link set %s %s", member, state))
}

// change edits the faults and puts the whole of them in force at once.
func (l *lan) change(edit func(*faults)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	edit(&l.faults)
	return l.ns.nft(l.faults.ruleset())
}

// firstError runs steps in order until one fails.
func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
