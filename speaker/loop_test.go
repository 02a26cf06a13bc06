package speaker

import (
	"context"
	"testing"
	"time"

	"quayside.io/speaker/l2"
	"quayside.io/speaker/ownership"
)

// Before it has read its interfaces a speaker does not say that it has none: the
// others would take the addresses of one that was only started again.
func TestInterfacesAreNotToldBeforeTheyAreRead(t *testing.T) {
	s, _ := lone(t)
	machine := ownership.New(s.machineOptions())
	if said := machine.Step(time.Now(), s.world()).Members.Facts; said.Interfaces != nil {
		t.Errorf("it says %#v", said.Interfaces)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.l2.Run(ctx) }()
	<-s.l2.(*l2.Announcer).Ready()
	if said := machine.Step(time.Now(), s.world()).Members.Facts; said.Interfaces == nil {
		t.Error("it has read them and does not say so")
	}
	stop()
	<-ended
}
