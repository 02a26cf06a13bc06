package proxy

import (
	"testing"

	"quayside.io/proxy/route"
)

func TestEndpointsAtMost(t *testing.T) {
	for _, c := range []struct{ asked, clients, descriptors, want int }{
		{0, 65536, 0, 1<<31 - 1}, // nothing bounds them
		{5000, 65536, 0, 5000},
		{0, 65536, 1 << 20, 1<<20 - 65536 - 65536}, // what clients do not have, and a sixteenth
		{5000, 65536, 1 << 20, 5000},
		{1 << 20, 65536, 1 << 20, 1<<20 - 65536 - 65536}, // no option opens more than there is
		{0, 300, 600, 236},
		{0, 32, 64, 8}, // some in any case
		{0, 1, 1, 1},
	} {
		if got := endpointsAtMost(&route.Connections{Endpoints: c.asked}, c.clients, c.descriptors); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestClientsAtMost(t *testing.T) {
	for _, c := range []struct {
		of                      route.Connections
		processors, descriptors int
		want                    int
	}{
		{route.Connections{}, 1, 1 << 20, 65536},
		{route.Connections{}, 8, 1 << 20, 131072},
		{route.Connections{}, 8, 0, 131072},
		{route.Connections{}, 8, 65536, 32768}, // the rest is for endpoints
		{route.Connections{Clients: 1000}, 2, 1 << 20, 2000},
		{route.Connections{Clients: 1000, Workers: 3}, 2, 1 << 20, 3000},
		{route.Connections{Clients: 1000, Workers: 3}, 2, 1024, 512},
		{route.Connections{Clients: -1}, 2, 1 << 20, 1 << 19},
		{route.Connections{Clients: -1}, 2, 0, 1<<31 - 1},
		{route.Connections{}, 1, 1, 1},
	} {
		if got := clientsAtMost(&c.of, c.processors, c.descriptors); got != c.want {
			t.Errorf("%+v with %d processors and %d descriptors: %d, want %d", c.of, c.processors, c.descriptors, got, c.want)
		}
	}
}
