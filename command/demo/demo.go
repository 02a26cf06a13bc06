package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"quayside.io/cluster/snapshot"
)

//go:embed manifests
var manifests embed.FS

// Loopback says which loopback addresses a machine has.
type Loopback string

// Linux and Windows answer on the whole of 127.0.0.0/8; macOS has one address, until
// somebody gives it more.
const (
	ManyAddresses Loopback = "many"
	OneAddress    Loopback = "one"
)

// FindLoopback tries what this machine has.
func FindLoopback() Loopback {
	l, err := net.Listen("tcp", "127.0.10.1:0")
	if err != nil {
		return OneAddress
	}
	_ = l.Close()
	return ManyAddresses
}

// address is that of the i-th pod of all.
func (l Loopback) address(i int) netip.Addr {
	if l == OneAddress {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrFrom4([4]byte{127, 0, 20, byte(1 + i)})
}

// Manifests returns the files of the demo's cluster on a machine with these addresses.
func Manifests(on Loopback) (all []fs.FS) {
	for _, folder := range []string{"routes", string(on)} {
		sub, err := fs.Sub(manifests, "manifests/"+folder)
		if err != nil {
			panic(err) // the folder is embedded above
		}
		all = append(all, sub)
	}
	return all
}

// podsPerService is how many pods of a Service have an address of their own.
const podsPerService = 10

// Cluster is where the demo's pods are made known.
type Cluster interface {
	Put(objects ...snapshot.Object)
	Delete(kind snapshot.Kind, key snapshot.Key)
}

// HelloService is the demo's plain TCP Service.
func HelloService() snapshot.Key { return snapshot.Key{Namespace: "default", Name: "hello"} }

// Demo runs the pods and the client that watches them.
type Demo struct {
	cluster Cluster
	watcher *watcher
	pods    []*deployment
	pace    time.Duration
}

// New returns a demo whose pods live in cluster and listen on those addresses. Every pace
// one pod is replaced; the client sends to the address that proxy returns, once there is
// one.
func New(cluster Cluster, on Loopback, pace time.Duration, proxy func() (netip.AddrPort, bool), log *slog.Logger) *Demo {
	d := &Demo{cluster: cluster, watcher: &watcher{proxy: proxy}, pace: pace}
	for i, name := range []string{"video", "store", "hello"} {
		d.pods = append(d.pods, &deployment{
			cluster: cluster, service: snapshot.Key{Namespace: "default", Name: name}, replicas: 3, log: log,
			address: func(n int) netip.Addr { return on.address(podsPerService*i + n%podsPerService) },
		})
	}
	return d
}

// Run starts the pods, replaces them one by one and sends requests until ctx ends.
func (d *Demo) Run(ctx context.Context) error {
	secret, err := certificate("store.example.com", "store-example-com", time.Now())
	if err != nil {
		return fmt.Errorf("demo: make a certificate for store.example.com: %w", err)
	}
	d.cluster.Put(secret)
	defer func() {
		for _, p := range d.pods {
			p.stop()
		}
	}()
	for _, p := range d.pods {
		if err := p.start(); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.roll(ctx) })
	group.Go(func() error { return d.watcher.run(ctx) })
	return group.Wait()
}

// roll replaces one pod after the other, as a rolling update does.
func (d *Demo) roll(ctx context.Context) error {
	tick := time.NewTicker(d.pace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := d.pods[i%len(d.pods)].replaceOldest(ctx); err != nil {
				return err
			}
		}
	}
}

// Stats is what the demo's client has seen.
type Stats struct {
	Requests int64 // answered or not
	Failed   int64 // not answered with 200
	Replaced int64 // pods that went and whose successor came
	LastErr  string
}

// Stats returns the counts so far.
func (d *Demo) Stats() Stats {
	s := d.watcher.stats()
	for _, p := range d.pods {
		s.Replaced += p.replaced.Load()
	}
	return s
}
