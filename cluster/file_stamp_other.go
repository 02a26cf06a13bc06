//go:build !linux

package cluster

import (
	"io/fs"
	"time"
)

// changeTime is not known here, so that every look at a file reads it.
func changeTime(fs.FileInfo) time.Time { return time.Time{} }
