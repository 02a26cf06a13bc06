package proxy

import "testing"

func TestClientsAtMost(t *testing.T) {
	for _, c := range []struct{ processors, descriptors, want int }{
		{1, 1 << 20, 65536},
		{8, 1 << 20, 131072},
		{8, 0, 131072},
		{8, 65536, 32768}, // the rest is for endpoints
		{1, 1, 1},
	} {
		if got := clientsAtMost(c.processors, c.descriptors); got != c.want {
			t.Errorf("with %d processors and %d descriptors: %d, want %d", c.processors, c.descriptors, got, c.want)
		}
	}
}
