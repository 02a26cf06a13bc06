package bgp_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"quayside.io/speaker/bgp"
)

// A node tells a router of an address. The router here is another Speaker, which waits to
// be dialled.
func Example() {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := netip.MustParseAddrPort(free.Addr().String())
	free.Close()
	nodeAddr := netip.MustParseAddr("127.0.0.2")
	router, node := bgp.New(bgp.Options{Listen: at.String()}), bgp.New(bgp.Options{})
	router.Set(&bgp.Want{Sessions: []bgp.Session{{Name: "node", Settings: bgp.Settings{
		Peer: netip.AddrPortFrom(nodeAddr, 179), Passive: true, ASN: 64501, PeerASN: 64500, RouterID: at.Addr(), IPv4: true, MultiHop: true,
	}}}})
	route := bgp.Route{Prefix: netip.MustParsePrefix("192.0.2.10/32"), Attributes: &bgp.Attributes{NextHop: nodeAddr, Communities: []uint32{64500<<16 | 100}}}
	node.Set(&bgp.Want{Sessions: []bgp.Session{{Name: "router", Routes: []bgp.Route{route}, Settings: bgp.Settings{
		Peer: at, Source: nodeAddr, ASN: 64500, PeerASN: 64501, RouterID: nodeAddr, IPv4: true, MultiHop: true,
	}}}})

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, s := range []*bgp.Speaker{router, node} {
		running.Go(func() { _ = s.Run(ctx) })
	}
	for {
		if state := node.State(); len(state) > 0 && state[0].Announced > 0 {
			fmt.Println(state[0].State, "with AS", state[0].PeerASN, "routes announced:", state[0].Announced)
			break
		}
		<-node.Watch()
	}
	stop()
	running.Wait()
	// Output:
	// Established with AS 64501 routes announced: 1
}
