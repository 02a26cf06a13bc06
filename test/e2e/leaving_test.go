package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/lab"
)

// taint sets the taints of a node, or removes them all where text is empty.
func (e edge) taint(node, text string) {
	e.t.Helper()
	body := fmt.Sprintf(`{"spec":{"taints":[%s]}}`, text)
	_, err := e.Kube().CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		e.t.Error(err)
	}
}

// deletionTaint is how the cluster autoscaler says that it drains a node.
const deletionTaint = `{"key":"ToBeDeletedByClusterAutoscaler","value":"1763750000","effect":"NoSchedule"}`

// keeper is a client that keeps its connections, as browsers and most other
// programs do, and asks one thing after the other.
type keeper struct {
	http *http.Client
	url  string

	asked, ended int
	failures     []error
}

func newKeeper(transport *http.Transport, url string) *keeper {
	return &keeper{http: &http.Client{Transport: transport, Timeout: 2 * time.Second}, url: url}
}

// ask reports whether the connection stays open.
func (k *keeper) ask() (stays bool, err error) {
	k.asked++
	resp, err := k.http.Get(k.url)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	switch {
	case err != nil:
		k.failures = append(k.failures, fmt.Errorf("request %d: %w", k.asked, err))
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("request %d: %s", k.asked, resp.Status)
		k.failures = append(k.failures, err)
	case resp.Close:
		k.ended++
	default:
		stays = true
	}
	return stays, err
}

// The node that holds the proxy's address is drained. Clients that keep their
// connections are asked to come again before the address moves, so that none
// of their requests fails but one that is under way at that very moment; the
// proxy that is left behind goes on serving, each time for one request only.
// When the node stays after all, its proxy keeps connections again, and takes
// the address from nobody.
func TestADrainAsksClientsToComeAgain(t *testing.T) {
	inPairs(t)
	e := quayside(t, "nftables")
	e.serve("video", "store")
	e.Apply(clusterIPServices("video", "store"))
	e.Apply(textbook)
	address, laptop := e.ingressAddress("by-host"), e.Client("laptop")
	e.until(laptop, address, "http://video.example.com/", "video")
	// A proxy that a test before this one cut off may take a while to hear again.
	for _, p := range e.Quayside().Proxies() {
		for _, n := range e.Nodes() {
			if n.Name() != p.Node() {
				continue
			}
			local := e.besides(n)
			e.Eventually(settle, func() error { _, err := local.ask(); return err })
			local.http.CloseIdleConnections()
		}
	}
	before := e.owner(laptop, address)

	client := newKeeper(laptop.Transport(), "http://"+address+"/video")
	defer client.http.CloseIdleConnections()
	if stays, err := client.ask(); !stays {
		t.Fatalf("connections are not kept from the start: %v", err)
	}
	leftBehind := e.besides(before)
	defer leftBehind.http.CloseIdleConnections()
	t.Cleanup(func() { e.taint(before.Name(), "") })
	e.taint(before.Name(), deletionTaint)
	begin := time.Now()
	var told, moved time.Duration
	for moved == 0 && time.Since(begin) < settle {
		_, _ = client.ask() // it keeps count
		if client.ended > 0 && told == 0 {
			told = time.Since(begin)
		}
		if s, err := e.speakerStatus(before.Name()); err == nil && s.Status.Leaving && len(s.Status.Announcing) == 0 {
			moved = time.Since(begin)
		}
		time.Sleep(2 * time.Millisecond)
	}
	e.Eventually(settle, func() error {
		if stays, err := client.ask(); !stays {
			return fmt.Errorf("the new owner does not keep connections, either: %v", err)
		}
		return nil
	})
	after := e.owner(laptop, address)
	t.Logf("asked to come again after %v, the address left %s for %s by %v; %d requests, %d of them the last of their connection, %d failed",
		told.Round(time.Millisecond), before.Name(), after.Name(), moved.Round(time.Millisecond), client.asked, client.ended, len(client.failures))
	if told == 0 || moved <= told || after.Name() == before.Name() || len(client.failures) > 1 {
		t.Errorf("the drain was not polite: %v", client.failures)
	}
	for range 3 {
		if stays, err := leftBehind.ask(); stays || err != nil {
			t.Errorf("the proxy on the drained node: connection stays %v, %v", stays, err)
		}
	}

	e.taint(before.Name(), "")
	e.Eventually(settle, func() error {
		if stays, err := leftBehind.ask(); !stays {
			return fmt.Errorf("the proxy on the node that stays does not keep connections: %v", err)
		}
		return nil
	})
	if now := e.owner(laptop, address); now.Name() != after.Name() {
		t.Errorf("%s took the address back from %s", now.Name(), after.Name())
	}
}

// besides is a client on a node that asks the node's own proxy, whoever holds
// the address.
func (e edge) besides(node *lab.Node) *keeper {
	e.t.Helper()
	for _, p := range e.Quayside().Proxies() {
		if p.Node() == node.Name() {
			return newKeeper(node.Transport(), "http://"+p.IP()+":8080/video")
		}
	}
	e.t.Fatalf("no proxy runs on %s", node.Name())
	return nil
}
