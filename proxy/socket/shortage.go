package socket

import (
	"errors"
	"syscall"
)

// IsShortage reports whether err, of accepting or connecting, says that it is us who lack
// what a connection takes: descriptors, or memory of the kernel. A port of our own is not
// among it: they are counted for each address that is dialled, so others may be reached.
func IsShortage(err error) bool {
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}
