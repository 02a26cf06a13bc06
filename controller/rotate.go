package controller

import (
	"bytes"
	"context"
	"time"
)

// keySettles is how long a key file needs to reach every speaker: a kubelet looks
// after a Secret every minute or two.
const keySettles = 10 * time.Minute

// KeyStage is how far a change of the gossip key has come. At each stage every
// speaker understands those of the stage before and of the next.
type KeyStage string

// The stages of a change: first every speaker learns a new key, then they write
// with it, then the old one goes.
const (
	KeySettled KeyStage = ""
	KeyAdded   KeyStage = "added" // the new secret is the last line: all can read it
	KeyUsed    KeyStage = "used"  // the new secret is the first line: all write with it
)

// RotateMembersKey takes the content of a key file one stage on if it is time: every
// so often a new secret is begun with, and each stage lasts until all speakers have
// the file. It returns the content and the stage as they are to be, and when to look
// again. What somebody else has written meanwhile is a change that is done.
func RotateMembersKey(file []byte, stage KeyStage, since, now time.Time, every time.Duration) ([]byte, KeyStage, time.Time) {
	lines := secretsOf(file)
	if len(lines) < 2 || stage != KeyAdded && stage != KeyUsed {
		stage = KeySettled
	}
	due := since.Add(keySettles)
	if stage == KeySettled {
		due = since.Add(every)
	}
	if now.Before(due) {
		return file, stage, due
	}
	next := now.Add(keySettles)
	switch last := len(lines) - 1; stage {
	case KeyAdded:
		lines, stage = append([][]byte{lines[last]}, lines[:last]...), KeyUsed
	case KeyUsed:
		lines, stage, next = lines[:1], KeySettled, now.Add(every)
	default:
		lines, stage = append(lines, bytes.TrimSpace(NewMembersKey())), KeyAdded
	}
	return append(bytes.Join(lines, []byte("\n")), '\n'), stage, next
}

// secretsOf are the lines of a key file that hold something.
func secretsOf(file []byte) (lines [][]byte) {
	for line := range bytes.Lines(file) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// tend sees to Options.Tend, again when it says so.
func (h *Controller) tend(ctx context.Context) error {
	if h.options.Tend == nil {
		return nil
	}
	failed := firstPause
	for {
		next, err := h.options.Tend(ctx)
		pause := min(max(time.Until(next), time.Second), time.Hour)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("a change of the gossip key waits; trying again", "error", err)
			pause, failed = failed, min(2*failed, time.Minute)
		} else {
			failed = firstPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
