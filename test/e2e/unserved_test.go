package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// What comes for a port that no Service has goes round between router and nodes. With the
// rule of docs/bgp.md it ends at the first node: who connects is not told that there is no
// way, and is connected once there is a port. Nodes reach the address as before.
func TestBGPPacketsThatNoServiceTakes(t *testing.T) {
	beside(t)
	e := three(t)
	e.podOnEachNode()
	r := newRack(e, "")
	far := r.far()
	if err := tryDial(r.laptop, far+":81", settle); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a port that no Service has: %v, want that its packet went round", err)
	}
	e.unserved("198.51.100.0/24", "drop")
	if err := tryDial(r.laptop, far+":81", 500*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a port that no Service has, where nodes drop what is for it: %v, want no answer", err)
	}
	late := make(chan error, 1)
	go func() { late <- tryDial(r.laptop, far+":81", settle) }()
	time.Sleep(100 * time.Millisecond) // its first SYN is dropped
	e.Apply(strings.Replace(bgpService("far", "Cluster"), "ports: [{", "ports: [{name: late, port: 81, targetPort: http}, {name: http, ", 1))
	if err := <-late; err != nil {
		t.Errorf("a client whose first SYN came before the port: %v", err)
	}
	e.servesTo(e.Node(1).Host, far)
}

// On layer 2 the node asks the LAN for the address in vain before it says so. A rule that
// rejects says it at once.
func TestL2PacketsThatNoServiceTakes(t *testing.T) {
	beside(t)
	e := three(t)
	laptop := e.Client("laptop")
	e.podOnEachNode()
	e.Apply(loadBalancer("Cluster"))
	address := e.serviceAddress("web")
	e.servedAt(laptop, address)
	if err := tryDial(laptop, address+":81", settle); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("a port that no Service has: %v, want that nobody has the address", err)
	}
	e.unserved(address, "reject")
	if err := tryDial(laptop, address+":81", settle); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port that no Service has, where nodes reject what is for it: %v, want a refusal", err)
	}
	e.servesTo(laptop.Host, address)
}

// tryDial returns why a client does not get a connection within a time, or nil.
func tryDial(from *lab.Client, addr string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// unserved has the nodes drop, or reject, what is for a prefix and no Service takes, as
// docs/bgp.md tells, until the test ends.
func (e edge) unserved(prefix, verdict string) {
	e.t.Helper()
	rules := strings.Replace(e.ofBGPPage("## Packets that no Service takes", "```"), "192.0.2.0/27 drop", prefix+" "+verdict, 1)
	file := filepath.Join(e.t.TempDir(), "unserved.nft")
	if err := os.WriteFile(file, []byte(rules), 0o644); err != nil {
		e.t.Fatal(err)
	}
	for _, n := range e.Nodes() {
		n.Exec("nft", "-f", file)
		e.t.Cleanup(func() { n.Exec("nft", "add table inet unserved; delete table inet unserved") })
	}
}
