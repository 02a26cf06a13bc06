package asker

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// An endpoint on a machine that is gone, and accepts no connection and refuses none, does
// not use up the time that there is for the others.
func TestAMuteEndpointLeavesTimeForOthers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mute, good := netip.MustParseAddrPort("127.0.0.9:9"), netip.MustParseAddrPort(l.Addr().String())
	lookup := Lookup(func(string, uint16) ([]netip.AddrPort, bool, error) {
		return []netip.AddrPort{mute, mute, good}, true, nil
	})
	synctest.Test(t, func(t *testing.T) {
		d := &net.Dialer{ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			if address == mute.String() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		for range 8 { // the order is random
			ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
			start := time.Now()
			c, err := lookup.Dial(ctx, d, "tcp", "auth.shop.svc:80")
			cancel()
			if err != nil {
				t.Errorf("after %v: %v", time.Since(start), err)
				continue
			}
			c.Close()
		}
	})
}
