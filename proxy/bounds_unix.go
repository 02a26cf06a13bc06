//go:build unix

package proxy

import (
	"math"
	"syscall"
)

// descriptors returns how many the process may have open; the runtime has raised the
// limit as far as it may. 0: there is none that matters.
func descriptors() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > math.MaxInt32 {
		return 0
	}
	return int(l.Cur)
}
