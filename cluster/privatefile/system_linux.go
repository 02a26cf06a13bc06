//go:build !portable

package privatefile

import (
	"os"
	"syscall"
)

const (
	// plainly follows no link, and waits for nobody at the other end of a pipe.
	plainly = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	// others are the rights that nobody else may have.
	others os.FileMode = 0o077
)

// isOurs reports whether the file is this user's.
func isOurs(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}
