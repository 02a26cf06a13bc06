//go:build !linux || portable

package command

import (
	"context"
	"errors"
	"io"

	"quayside.io/cluster"
)

// errNeedsLinux is all that there is of the speaker elsewhere: it lives by packet
// sockets, netlink and socket options that only Linux has.
var errNeedsLinux = errors.New("the speaker needs Linux")

func (e *env) runSpeaker(context.Context, speakerFlags) error { return errNeedsLinux }

func localSpeaker(*cluster.Files, string, string, *process) (announcer, error) {
	return nil, errNeedsLinux
}

// another returns w: a write to a standard output that nobody reads any more ends the
// process here.
func another(w io.Writer) io.Writer { return w }
