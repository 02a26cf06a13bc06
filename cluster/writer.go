package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"quayside.io/cluster/snapshot"
)

// WriteDeadline bounds every write. A new leader counts on it: what its
// predecessor began has ended this long after the predecessor stopped.
const WriteDeadline = 5 * time.Second

// ownPrefix is the prefix of the annotations that a status write carries along.
const ownPrefix = "quayside.io/"

// ErrStale says that a write was refused because the object has changed or gone
// since the snapshot it was computed from. The answer is to compute again.
var ErrStale = errors.New("the object has changed in the meantime")

// ErrRefused says that the server will not have a write, whenever it is tried:
// this account may not do it, or an admission policy or the schema forbids it.
var ErrRefused = errors.New("the server refuses it")

// Writer is every write that Quayside does.
type Writer interface {
	// UpdateStatus writes the status of obj and, for a Service, its
	// quayside.io/* annotations, provided that obj's resourceVersion is still
	// the current one; else the error is ErrStale. A missing SpeakerStatus is
	// created. When it returns nil, Snapshot shows the outcome.
	UpdateStatus(ctx context.Context, obj snapshot.Object) error
	// Event tells the owner of an object that something happened. It never
	// blocks and drops repetitions. eventType is "Normal" or "Warning".
	Event(about snapshot.Ref, eventType, reason, message string)
	// Inflight returns what was written without an answer: objects as they
	// will be if the server did receive the write. Whoever hands out addresses
	// must treat those in it as taken.
	Inflight() []snapshot.Object
}

// stale wraps ErrStale with the object it is about.
func stale(o snapshot.Object, why string) error {
	return fmt.Errorf("write status of %s: %w (%s)", snapshot.RefOf(o), ErrStale, why)
}

// isOwn reports whether an annotation is written by Quayside.
func isOwn(annotation string) bool { return strings.HasPrefix(annotation, ownPrefix) }
