package members

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/hashicorp/memberlist"

	"quayside.io/cluster/gossipkey"
)

// keyPoll looks at the file without an event, for file systems that send none.
const keyPoll = 5 * time.Second

func readKeys(path string) ([][]byte, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("members key file: %w", err)
	}
	keys, err := gossipkey.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("members key file %s: %w", path, err)
	}
	return keys, nil
}

// rotate makes ring hold exactly keys, the first one encrypting. New keys are
// added before old ones go.
func rotate(ring *memberlist.Keyring, keys [][]byte) error {
	for _, k := range keys {
		if err := ring.AddKey(k); err != nil {
			return fmt.Errorf("add a key: %w", err)
		}
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use the first key: %w", err)
	}
	for _, old := range slices.Clone(ring.GetKeys()) { // what it returns is what RemoveKey shifts
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, old) }) {
			if err := ring.RemoveKey(old); err != nil {
				return fmt.Errorf("remove an old key: %w", err)
			}
		}
	}
	return nil
}

// awaitKeys returns the keys as soon as the file holds some, and calls report
// with the reason whenever it does not.
func awaitKeys(ctx context.Context, path string, report func(error)) ([][]byte, error) {
	changed := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { <-done }()
	defer cancel() // before the wait above
	go func() { defer close(done); watchFile(ctx, path, func() { poke(changed) }) }()
	for {
		keys, err := readKeys(path)
		if err == nil {
			return keys, nil
		}
		report(err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// followKeys rotates ring whenever the file changes, and calls rotated. A file that
// went bad leaves the last good keys in force.
func followKeys(ctx context.Context, path string, ring *memberlist.Keyring, log *slog.Logger, rotated func()) {
	var last string
	watchFile(ctx, path, func() {
		keys, err := readKeys(path)
		if err == nil {
			before := ring.GetKeys()
			if err = rotate(ring, keys); err == nil && !slices.EqualFunc(before, ring.GetKeys(), bytes.Equal) {
				log.Info("members keys rotated", "keys", len(keys))
				rotated()
			}
		}
		if err != nil && err.Error() != last {
			log.Warn("the members key file is no good; the last good keys stay in force", "error", err)
		}
		last = ""
		if err != nil {
			last = err.Error()
		}
	})
}

// watchFile calls changed whenever path may have changed, until ctx ends. The
// directory is watched, since Kubernetes swaps Secrets by symbolic links.
func watchFile(ctx context.Context, path string, changed func()) {
	events := make(<-chan fsnotify.Event)
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer func() { _ = w.Close() }()
		if w.Add(filepath.Dir(path)) == nil {
			events = w.Events
		}
	}
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-events:
		}
		changed()
	}
}

// maxPrints bounds what is told: a rotation needs two, and whoever writes the file
// himself may keep more.
const maxPrints = 8

// notePrints notes which keys are in ring. memberlist shifts them in place, so whoever
// rotates them calls it.
func (m *Members) notePrints(ring *memberlist.Keyring) {
	var words []string
	for _, key := range ring.GetKeys() { // the primary key is the first
		words = append(words, gossipkey.Print(key))
	}
	words = words[:min(len(words), maxPrints)]
	m.prints.Store(&words)
	m.changed()
}

// KeyPrints are the words for the gossip keys that this node has, the one that it
// writes with first: who rotates them waits until all have the new one.
func (m *Members) KeyPrints() []string {
	if words := m.prints.Load(); words != nil {
		return *words
	}
	return nil
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
