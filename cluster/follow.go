package cluster

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet    = 40 * time.Millisecond  // no event for so long: the writer has finished
	patience = 500 * time.Millisecond // …or so long after the first, whatever comes
	recheck  = 250 * time.Millisecond // until an empty or missing file is believed
	poll     = 2 * time.Second        // between looks where the kernel does not tell
)

// follow reads the files again whenever something happens around them. Folders
// are watched, not files: editors replace a file, and a mounted ConfigMap
// replaces the link through which every file is reached.
func (f *Files) follow(ctx context.Context) error {
	if len(f.cache.paths) == 0 {
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.log.Warn("cannot watch the manifests; looking at them every "+poll.String(), "error", err)
		return f.pollFiles(ctx)
	}
	defer watcher.Close()
	look := time.NewTimer(0) // at once: something may have changed since NewFiles
	defer look.Stop()
	since := newUnrest()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-watcher.Events:
			look.Reset(since.wait(e, time.Now()))
		case err := <-watcher.Errors:
			f.log.Warn("watching the manifests", "error", err)
			look.Reset(0) // events may be lost
		case <-look.C:
			since = newUnrest()
			watched := watchAll(watcher, f.cache.paths)
			switch again := f.reload(); {
			case again:
				look.Reset(recheck)
			case !watched:
				look.Reset(poll)
			}
		}
	}
}

// unrest is what has happened around the files since they were last looked at.
type unrest struct {
	first time.Time       // event
	busy  map[string]bool // whatever may still be written
	left  string          // the name that a file has just been renamed from
}

func newUnrest() *unrest { return &unrest{busy: map[string]bool{}} }

// wait returns how long to wait for more after an event. A file that takes the name of
// a manifest was written under another one, and is whole: where nothing else is being
// written nothing is waited for.
func (u *unrest) wait(e fsnotify.Event, now time.Time) time.Duration {
	if u.first.IsZero() {
		u.first = now
	}
	left := u.left
	u.left = ""
	u.busy[e.Name] = true
	switch {
	case e.Has(fsnotify.Rename):
		u.left = e.Name
	case e.Has(fsnotify.Create) && left != "" && isManifest(filepath.Base(e.Name)) && !isManifest(filepath.Base(left)):
		// The kernel tells both names of one renaming one after the other.
		delete(u.busy, left)
		delete(u.busy, e.Name)
	}
	if len(u.busy) == 0 {
		return 0
	}
	return min(quiet, max(0, u.first.Add(patience).Sub(now)))
}

func (f *Files) pollFiles(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(poll):
			f.reload()
		}
	}
}

// reload takes in what has changed and reports whether to look again soon.
func (f *Files) reload() (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	origins, changed, again := f.cache.scan(time.Now())
	if changed {
		f.arrange(origins, nil)
	}
	return again
}

// watchAll watches the folders around paths; adding one twice does no harm, and
// a folder that was replaced is found again. It reports whether all could be.
func watchAll(watcher *fsnotify.Watcher, paths []string) bool {
	ok := true
	for _, p := range paths {
		for _, dir := range foldersOf(p) {
			ok = watcher.Add(dir) == nil && ok
		}
	}
	return ok
}

// foldersOf returns the folders in which a change may change what path says:
// its own, and the one that a link leads to.
func foldersOf(path string) []string {
	dirs := []string{path}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		dirs[0] = filepath.Dir(path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		if info, err := os.Stat(real); err == nil && !info.IsDir() {
			real = filepath.Dir(real)
		}
		dirs = append(dirs, real)
	}
	return dirs
}
