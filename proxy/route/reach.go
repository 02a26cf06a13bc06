package route

import (
	"errors"
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
)

// errUnread is what is wrong with a Secret or ConfigMap of which this process cannot
// say whether it exists. A sentence about the object ends with it.
var errUnread = errors.New("could not be read by this account")

// reach is what could be read of the kinds that are only read where an Ingress or
// an option names one.
type reach struct{ secrets, configMaps snapshot.Reach }

func reachOf(c *snapshot.Cluster) reach {
	return reach{c.Reach(snapshot.Secret), c.Reach(snapshot.ConfigMap)}
}

// turned yields the keys of ix that are read now and were not, or the reverse. All
// are looked at, but only where anything has changed.
func turned(before, after snapshot.Reach, ix index) iter.Seq[snapshot.Key] {
	return func(yield func(snapshot.Key) bool) {
		if before == after {
			return
		}
		for key := range ix.All() {
			if before.Covers(key) != after.Covers(key) && !yield(key) {
				return
			}
		}
	}
}

// turnedObjects is turned for an index of several kinds, by keyOf.
func turnedObjects(before, after reach, ix index) iter.Seq[snapshot.Key] {
	return func(yield func(snapshot.Key) bool) {
		if before == after {
			return
		}
		for key := range ix.All() {
			kind, name, _ := strings.Cut(key.Name, " ")
			was, is := before.secrets, after.secrets
			switch kind {
			case snapshot.Secret.String():
			case snapshot.ConfigMap.String():
				was, is = before.configMaps, after.configMaps
			default:
				continue
			}
			object := snapshot.Key{Namespace: key.Namespace, Name: name}
			if was.Covers(object) != is.Covers(object) && !yield(key) {
				return
			}
		}
	}
}

// secret returns the Secret of that key, nil if there is none; unread says that
// nobody knows.
func (w *compiler) secret(key snapshot.Key) (s *corev1.Secret, unread bool) {
	s, ok := w.c.Secrets.Get(key)
	return s, !ok && !w.c.Reach(snapshot.Secret).Covers(key)
}
