package lbpool_test

import (
	"fmt"
	"net/netip"
	"time"

	"go4.org/netipx"

	"quayside.io/lbpool"
)

// Two Services listen on different ports and share an address; a third one gets
// the next that is free.
func Example() {
	lan, err := lbpool.ParseRange("192.0.2.10-192.0.2.20")
	if err != nil {
		fmt.Println(err)
		return
	}
	pools := lbpool.Divide([]*lbpool.Pool{{Name: "lan", Ranges: []netipx.IPRange{lan}}})
	allocations := lbpool.NewAllocations(pools)

	sharing := func(name string, port int32) *lbpool.Holder {
		return &lbpool.Holder{Realm: "shop", Name: name, Sharing: &lbpool.Sharing{
			Key: "front", Ports: []lbpool.Port{{Protocol: "TCP", Number: port}},
		}}
	}
	web, tls, again := sharing("web", 80), sharing("tls", 443), sharing("again", 80)
	first, _ := allocations.Next(0, lbpool.IPv4, time.Now())
	allocations.Occupy(first, web)
	shared, _ := allocations.Join(0, lbpool.IPv4, tls, func(netip.Addr) bool { return false })
	allocations.Occupy(shared, tls)
	_, why := allocations.Obstacle(first, again)
	next, _ := allocations.Next(0, lbpool.IPv4, time.Now())

	fmt.Println(web, "and", tls, "have", first, "and", shared)
	fmt.Println(again, "cannot have the address of", web, why)
	fmt.Println("the next is", next)
	// Output:
	// shop/web and shop/tls have 192.0.2.10 and 192.0.2.10
	// shop/again cannot have the address of shop/web which already uses port TCP/80 of it
	// the next is 192.0.2.11
}
