package cluster

import (
	"errors"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// streamPatience is how long the server may take to stream all there is, before it is asked
// for a list instead, which costs it more. 50,000 EndpointSlices take a few seconds.
const streamPatience = 15 * time.Second

// errEndless is why a list is asked for and no stream.
var errEndless = errors.New("the server, or a proxy before it, streamed a list without an end")

// stream is what one reflector has of the lists that are streamed to it (KEP-3157). These end
// with a bookmark, which some servers and some proxies before them never send: kine, aggregated
// servers, Teleport's agent (kubernetes/kubernetes#140890, gravitational/teleport#64188).
// client-go would wait for it without a bound, and begin again without a bound where the
// server hangs up. Here a second try is a list.
type stream struct {
	running *time.Timer  // until the patience is over; nil: none runs, or it has ended well
	endless *atomic.Bool // one of any reflector has not ended in time: no other is asked for
}

// streams reports whether it is one that is asked for.
func streams(o *metav1.ListOptions) bool { return o.SendInitialEvents != nil && *o.SendInitialEvents }

// mayBegin returns why no stream is to be asked for, which makes the reflector ask for a list.
func (s *stream) mayBegin() error {
	cutShort := s.running != nil
	s.ended()
	if cutShort || s.endless.Load() {
		return errEndless
	}
	return nil
}

// began has w end once the patience with it is over.
func (s *stream) began(w watch.Interface) {
	s.running = time.AfterFunc(streamPatience, func() {
		s.endless.Store(true)
		w.Stop()
	})
}

// ended notes that all there is has been told.
func (s *stream) ended() {
	if s.running != nil {
		s.running.Stop()
		s.running = nil
	}
}

// withoutStream has a reflector begin with a list: a stream tells all there is.
type withoutStream struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what the reflector looks for.
func (withoutStream) IsWatchListSemanticsUnSupported() bool { return true }
