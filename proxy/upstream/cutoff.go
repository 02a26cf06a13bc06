package upstream

import (
	"errors"
	"slices"
	"time"
)

const (
	// cutOffAfter is how many times in a row nobody has confirmed what was sent again:
	// after 0.2, 0.6 and 1.4 s on a network as quick as a cluster's (RFC 6298, with Linux'
	// least timeout), or how many signs of life have failed to come. A busy pod is no
	// reason, for its kernel answers.
	cutOffAfter = 3
	// cutOffLook is how soon we look again once something has been lost.
	cutOffLook = 500 * time.Millisecond
)

// errCutOff says that a pod's machine is gone, or the way there.
var errCutOff = errors.New("its machine confirms nothing that it is sent")

// cutOff is asked when a wait for an answer, over c, has lasted. A machine that dies ends no
// connection, so its pods look as if they were slow, until ReadTimeout, or until the
// cluster takes them out of the Service, which takes most of a minute. Here the endpoint
// counts as one that takes no connections as soon as its kernel is silent. The request goes
// to another endpoint, if there is one and it may be repeated; any other goes on waiting,
// for the silence may end.
func (t *transaction) cutOff(c *conn) error {
	switch lost := c.lost(); {
	case lost == 0:
		return nil
	case lost < cutOffAfter:
		if t.stream != nil {
			return nil // it looks soon enough
		}
		return t.patience(time.Now(), cutOffLook)
	}
	e := c.endpoint
	e.closeIdle()
	t.health().Failed(time.Now())
	f := &failure{reason: connectionLost, err: errCutOff, endpoint: e, again: t.repeatable()}
	if t.end > 0 || !t.mayTryAgain() || !t.mayRepeat(f) || !t.othersInTurn() {
		return nil
	}
	t.tried = append(t.tried, t.at)
	return f
}

// othersInTurn reports whether an endpoint that was not tried is in turn. If none is, it is
// rather this machine that is cut off, and a connection that there is comes back soonest.
func (t *transaction) othersInTurn() bool {
	for i := range t.targets.set.Endpoints {
		if i != t.at && !slices.Contains(t.tried, i) && !t.targets.set.Endpoints[i].Health.Ejected() {
			return true
		}
	}
	return false
}
