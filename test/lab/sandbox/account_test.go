package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCapabilityMask(t *testing.T) {
	mask, err := capabilityMask([]string{"NET_RAW", "CAP_NET_ADMIN"})
	if want := uint64(1<<unix.CAP_NET_RAW | 1<<unix.CAP_NET_ADMIN); err != nil || mask != want {
		t.Errorf("mask %#x, %v; want %#x", mask, err, want)
	}
	if _, err := capabilityMask([]string{"NET_ROW"}); err == nil {
		t.Error("an unknown capability is accepted")
	}
}
