package cluster

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is the ctime of a file.
func changeTime(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return time.Time{}
}
