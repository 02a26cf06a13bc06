package objects

import (
	"testing"

	"quayside.io/cluster/snapshot"
)

// Wired is an object that is sent as protobuf.
type Wired[T any] interface {
	*T
	snapshot.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Received is o as a watch has it: nothing of it is shared with another object.
func Received[T any, P Wired[T]](t testing.TB, o P) P {
	t.Helper()
	text, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	p := P(new(T))
	if err := p.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	return p
}
