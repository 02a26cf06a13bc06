package cluster

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// filesGroup is where files stand among the origins, after what is embedded.
const filesGroup = 0

// keepsGood is added to a fault of a file that is still used as it was.
const keepsGood = " (the last good version of the file stays in force)"

// fileCache reads the files and remembers the last good version of each.
type fileCache struct {
	paths []string
	files map[string]*cachedFile
	away  map[string]string // paths of which it cannot be told what files they have, and why
}

// cachedFile is one file.
type cachedFile struct {
	origin  // with the objects of the last good version
	stamp   fileStamp
	digest  digest     // of the text last read, good or not
	parts   []filePart // of the last good version
	faults  []snapshot.Problem
	read    bool // at least once
	changed bool // in what it says, since changes was last called
	// emptied is when the file was first seen empty or missing though it had
	// objects before. An editor may be writing it: that is believed only after
	// recheck, however many looks there are meanwhile. Zero: it was not seen so.
	emptied time.Time
}

func newFileCache(paths []string) *fileCache {
	clean := make([]string, len(paths))
	for i, p := range paths {
		clean[i] = filepath.Clean(p)
	}
	return &fileCache{paths: clean, files: map[string]*cachedFile{}, away: map[string]string{}}
}

// scan reads what has changed. It returns the origins that say something else than
// before, and reports whether anything changed, if only a fault, and whether another
// look is needed soon.
func (c *fileCache) scan(now time.Time) (origins []*origin, changed, again bool) {
	found, away := map[string]bool{}, map[string]string{}
	for _, p := range c.paths {
		names, err := list(p)
		switch {
		case err == nil:
		case !errors.Is(err, fs.ErrNotExist):
			away[p], again = err.Error(), true // it may be mended where nobody looks
		case c.hasFilesOf(p):
			away[p] = "the folder is gone"
		}
		for _, name := range names {
			found[name] = true
			if c.files[name] == nil {
				c.files[name] = &cachedFile{origin: origin{group: c.group(name), name: name}}
			}
		}
	}
	changed = !maps.Equal(c.away, away)
	c.away = away
	news, look := c.rereadAll(found, now)
	changed, again = changed || news, again || look
	for name, f := range c.files {
		if !found[name] {
			switch {
			case slices.Contains(c.paths, name):
				// Asked for by name: its disappearance is a fault.
				changed = f.fail("the file is gone") || changed
			case c.isAway(f):
				// Nobody can tell whether it is there: the fault is its folder's.
			case len(f.objects) == 0 || f.empty(now):
				f.objects, f.changed = nil, true
				delete(c.files, name)
			default:
				again = true
			}
		}
		if f.changed {
			f.changed, changed = false, true
			origins = append(origins, &f.origin)
		}
	}
	return origins, changed, again
}

// rereadAll reads the files again, several at once.
func (c *fileCache) rereadAll(names map[string]bool, now time.Time) (changed, again bool) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	var news, looks atomic.Bool
	for name := range names {
		f := c.files[name]
		if f.isAsItWas() {
			continue
		}
		g.Go(func() error {
			read, look := f.reread(now)
			if read {
				news.Store(true)
			}
			if look {
				looks.Store(true)
			}
			return nil
		})
	}
	_ = g.Wait() // nothing of it fails: faults are kept with their file
	return news.Load(), looks.Load()
}

// hasFilesOf reports whether files of a folder are known.
func (c *fileCache) hasFilesOf(folder string) bool {
	for name := range c.files {
		if filepath.Dir(name) == folder {
			return true
		}
	}
	return false
}

// isAway reports whether the folder of a file cannot be read.
func (c *fileCache) isAway(f *cachedFile) bool {
	_, away := c.away[filepath.Dir(f.name)]
	return away
}

// group is the first path that a file is found through.
func (c *fileCache) group(name string) int {
	return filesGroup + slices.IndexFunc(c.paths, func(p string) bool { return p == name || filepath.Dir(name) == p })
}

// isAsItWas reports whether the file cannot have been written since it was read. A pipe
// says what it has to say once.
func (f *cachedFile) isAsItWas() bool {
	if f.read && f.stamp.info != nil && !f.stamp.info.Mode().IsRegular() {
		return true
	}
	return f.read && f.emptied.IsZero() && f.stamp.isSafe() && f.stamp.same(stampOf(f.name, time.Time{}))
}

// reread reads the file if its text has changed.
func (f *cachedFile) reread(now time.Time) (changed, again bool) {
	f.stamp = stampOf(f.name, time.Now()) // before the text, so that what comes between is seen next time
	text, err := os.ReadFile(f.name)
	if err != nil {
		// It may be mended where nobody looks: a descriptor may be free again, or the
		// disk may answer.
		return f.fail(err.Error()), !errors.Is(err, fs.ErrNotExist)
	}
	sum := digestOf(text)
	if f.read && sum == f.digest {
		f.emptied = time.Time{}
		return false, false
	}
	if len(bytes.TrimSpace(text)) == 0 && len(f.objects) > 0 && !f.empty(now) {
		return false, true
	}
	r, parts := decodeParts(f.name, text, f.known())
	keepsOld := f.read && len(r.Errors) > 0 && len(f.objects) > 0
	f.digest, f.emptied, f.read = sum, time.Time{}, true
	f.faults = faultsOf(r, keepsOld)
	if !keepsOld {
		f.objects, f.parts, f.changed = r.Objects, parts, true
	}
	return true, false
}

// empty notes that the file is empty or missing, and reports whether it has been
// for long enough to be believed.
func (f *cachedFile) empty(now time.Time) bool {
	if f.emptied.IsZero() {
		f.emptied = now
	}
	return now.Sub(f.emptied) >= recheck
}

// fail keeps the last good version of a file that cannot be read.
func (f *cachedFile) fail(why string) (changed bool) {
	f.digest, f.stamp = digest{}, fileStamp{} // whatever comes next is news
	if len(f.objects) > 0 {
		why += keepsGood
	}
	faults := []snapshot.Problem{unreadable(f.name, why)}
	if slices.Equal(f.faults, faults) {
		return false
	}
	f.faults = faults
	return true
}

// faults are what is wrong with the files, in their order.
func (c *fileCache) faults() (faults []snapshot.Problem) {
	files := slices.SortedFunc(maps.Values(c.files), func(a, b *cachedFile) int { return a.origin.compare(&b.origin) })
	for _, f := range files {
		faults = append(faults, f.faults...)
	}
	for _, p := range c.paths {
		if why, away := c.away[p]; away && c.files[p] == nil {
			faults = append(faults, unreadable(p, why+"; what its files said last stays in force"))
		}
	}
	return faults
}

// unreadable is the fault of a file or folder that cannot be read.
func unreadable(name, why string) snapshot.Problem {
	return snapshot.Problem{Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: manifest.Unreadable, Message: why}
}

// list returns the manifest files that a path stands for. Like kubectl, it does
// not descend into folders within a folder. The error says that it cannot be told.
func list(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if !isManifest(e.Name()) {
			continue
		}
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			names = append(names, name) // that it cannot be read is told of the file
		}
	}
	return names, nil
}

func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".")
	}
	return false
}
