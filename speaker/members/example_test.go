package members_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"quayside.io/speaker/members"
)

// Each speaker declares its peers and the addresses that it owns, and sees who else lives
// and what the others own.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("a secret of sixteen bytes or more\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	nodes := []members.Peer{{Name: "n1", Addr: netip.MustParseAddr("127.78.0.1")}, {Name: "n2", Addr: netip.MustParseAddr("127.78.0.2")}}
	service := netip.MustParseAddr("192.0.2.10")
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var all []*members.Members
	for i, me := range nodes {
		m, err := members.New(members.Options{NodeName: me.Name, Bind: me.Addr.String() + ":17946", KeyFile: key, Profile: "fast"})
		if err != nil {
			fmt.Println(err)
			continue
		}
		want := &members.Want{Self: me.Addr, Peers: []members.Peer{nodes[1-i]}, Known: map[netip.Addr]struct{}{service: {}}}
		if me.Name == "n1" {
			want.Claims = map[netip.Addr]int64{service: 1}
		}
		m.Set(want)
		running.Go(func() { _ = m.Run(ctx) })
		all = append(all, m)
	}

	for all[1].View().Claims[service].Node == "" {
		<-all[1].Watch()
	}
	fmt.Println(service, "is announced by", all[1].View().Claims[service].Node)
	stop()
	running.Wait()
	// Output:
	// 192.0.2.10 is announced by n1
}
