package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

const (
	routers  = 4
	prefixes = 10_000
	changes  = 200 // in each round
)

// learn measures how fast routers learn.
func learn(rounds int) error {
	list, order, err := startRouters()
	defer func() {
		for _, r := range list {
			r.close()
		}
	}()
	if err != nil {
		return err
	}
	var all, typical, reached, used, memory series
	for range rounds {
		l, err := learnOnce(list, order)
		if err != nil {
			return err
		}
		all, memory = append(all, l.all), append(memory, l.memory)
		typical = append(typical, l.reached.percentile(.5))
		reached, used = append(reached, l.reached.percentile(.99)), append(used, l.used.percentile(.99))
	}
	all.print(fmt.Sprintf("%d prefixes to %d routers, from the start of the speaker", prefixes, routers), "ms")
	typical.print(fmt.Sprintf("one more prefix is in all routers' tables, median of %d", changes), "ms")
	reached.print("the same, p99", "ms")
	used.print("and they use it (FRR waits for 50 ms before it chooses), p99", "ms")
	memory.print("resident, at most", "MB")
	return nil
}

func startRouters() (list []*host, o order, err error) {
	o = order{PeerASN: 65001, Prefixes: prefixes, Hold: 90 * time.Second}
	for n := range routers {
		r, err := newHost(fmt.Sprint("router", n))
		if err != nil {
			return list, o, err
		}
		list = append(list, r)
		if err := sh(`ip link add r%d type veth peer name eth0 netns %d
			ip addr add 10.0.%d.1/24 dev r%d; ip link set r%d up`, n, r.pid, n, n, n); err != nil {
			return list, o, err
		}
		if err := r.sh("ip addr add 10.0.%d.2/24 dev eth0; ip link set eth0 up", n); err != nil {
			return list, o, err
		}
		config := fmt.Sprintf("router bgp 65001\n bgp router-id 10.0.%d.2\n no bgp ebgp-requires-policy\n neighbor 10.0.%d.1 remote-as %d\n neighbor 10.0.%d.1 passive\n", n, n, ourASN, n)
		if err := r.frr(config, "zebra", "bgpd"); err != nil {
			return list, o, err
		}
		o.Peers = append(o.Peers, netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.2:179", n)))
	}
	return list, o, nil
}

// learning is one round: times in ms, memory in MB.
type learning struct {
	all           float64
	reached, used series // of each change
	memory        float64
}

func learnOnce(list []*host, o order) (l learning, err error) {
	var ask []*vty
	for _, r := range list {
		v, err := r.vty("bgpd")
		if err != nil {
			return l, err
		}
		defer v.Close()
		ask = append(ask, v)
	}
	began := time.Now()
	d, err := startDriver()
	if err != nil {
		return l, err
	}
	defer func() {
		d.stop()
		err = firstOf(err, allHave(ask, 0)) // the next round begins from nothing
	}()
	if err := firstOf(d.do(o), allHave(ask, o.Prefixes)); err != nil {
		return l, err
	}
	l.all = ms(time.Since(began))
	for range changes {
		o.Changes++
		if err := l.change(d, o, ask); err != nil {
			return l, err
		}
	}
	l.memory, err = resident(d.Process.Pid)
	return l, err
}

// change adds a prefix, and waits until all routers have it, and then until all
// use it.
func (l *learning) change(d *driver, o order, ask []*vty) error {
	added := prefix(o.Prefixes + o.Changes - 1).String()
	began := time.Now()
	if err := d.do(o); err != nil {
		return err
	}
	await := func(is func(known, used bool) bool) (float64, error) {
		for _, v := range ask {
			if err := within(10*time.Second, added, func() error {
				known, used, err := v.knows(added)
				if err == nil && !is(known, used) {
					err = errors.New("a router does not have it")
				}
				return err
			}); err != nil {
				return 0, err
			}
		}
		return ms(time.Since(began)), nil
	}
	reached, err := await(func(known, _ bool) bool { return known })
	if err != nil {
		return err
	}
	used, err := await(func(_, used bool) bool { return used })
	l.reached, l.used = append(l.reached, reached), append(l.used, used)
	return err
}

// allHave waits until each router has so many prefixes.
func allHave(ask []*vty, n int) error {
	for _, v := range ask {
		if err := within(60*time.Second, "prefixes", func() error {
			have, err := v.learned()
			if err == nil && have != n {
				err = fmt.Errorf("a router has %d of %d", have, n)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
