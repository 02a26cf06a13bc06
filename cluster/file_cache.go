package cluster

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// keepsGood is added to a fault of a file that is still used as it was.
const keepsGood = " (the last good version of the file stays in force)"

// fileCache reads the files and remembers the last good version of each.
type fileCache struct {
	paths []string
	files map[string]*cachedFile
}

// cachedFile is one file.
type cachedFile struct {
	digest  [sha256.Size]byte // of the text last read, good or not
	objects []snapshot.Object // of the last good version
	faults  []snapshot.Problem
	read    bool // at least once
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
	return &fileCache{paths: clean, files: map[string]*cachedFile{}}
}

// scan reads what has changed. It reports whether anything did, and whether
// another look is needed soon.
func (c *fileCache) scan(now time.Time) (changed, again bool) {
	found := map[string]bool{}
	for _, p := range c.paths {
		for _, name := range list(p) {
			found[name] = true
			if c.files[name] == nil {
				c.files[name] = &cachedFile{}
			}
			read, look := c.files[name].reread(name, now)
			changed, again = changed || read, again || look
		}
	}
	for name, f := range c.files {
		if found[name] {
			continue
		}
		switch {
		case slices.Contains(c.paths, name):
			// Asked for by name: its disappearance is a fault.
			changed = f.fail(name, "the file is gone") || changed
		case len(f.objects) == 0 || f.empty(now):
			delete(c.files, name)
			changed = true
		default:
			again = true
		}
	}
	return changed, again
}

// reread reads the file if its text has changed.
func (f *cachedFile) reread(name string, now time.Time) (changed, again bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return f.fail(name, err.Error()), false
	}
	digest := sha256.Sum256(text)
	if f.read && digest == f.digest {
		f.emptied = time.Time{}
		return false, false
	}
	if len(bytes.TrimSpace(text)) == 0 && len(f.objects) > 0 && !f.empty(now) {
		return false, true
	}
	r := manifest.Decode(name, text)
	keepsOld := f.read && len(r.Errors) > 0 && len(f.objects) > 0
	f.digest, f.emptied, f.read = digest, time.Time{}, true
	f.faults = faultsOf(r, keepsOld)
	if !keepsOld {
		f.objects = r.Objects
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
func (f *cachedFile) fail(name, why string) (changed bool) {
	f.digest = [sha256.Size]byte{} // whatever comes next is news
	if len(f.objects) > 0 {
		why += keepsGood
	}
	faults := []snapshot.Problem{{
		Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: manifest.Unreadable,
		Message: why}}
	if slices.Equal(f.faults, faults) {
		return false
	}
	f.faults = faults
	return true
}

// origins returns what every file says, in the order of paths and names.
func (c *fileCache) origins() (origins []origin, faults []snapshot.Problem) {
	seen := map[string]bool{}
	take := func(name string) {
		if f := c.files[name]; f != nil && !seen[name] {
			seen[name] = true
			origins = append(origins, origin{name, f.objects})
			faults = append(faults, f.faults...)
		}
	}
	for _, p := range c.paths {
		take(p)
		var names []string
		for name := range c.files {
			if filepath.Dir(name) == p {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			take(name)
		}
	}
	return origins, faults
}

// list returns the manifest files that a path stands for. Like kubectl, it does
// not descend into folders within a folder.
func list(path string) []string {
	if info, err := os.Stat(path); err != nil {
		return nil
	} else if !info.IsDir() {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && isManifest(e.Name()) {
			names = append(names, name)
		}
	}
	return names
}

func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

// readEmbedded reads every manifest in embedded file systems. These are ours,
// so that a fault in one is an error.
func readEmbedded(all []fs.FS) (origins []origin, err error) {
	for _, files := range all {
		read, err := readFS(files)
		if err != nil {
			return nil, err
		}
		origins = append(origins, read...)
	}
	return origins, nil
}

func readFS(files fs.FS) ([]origin, error) {
	var origins []origin
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isManifest(d.Name()) {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		r := manifest.Decode(path, text)
		if len(r.Errors) > 0 {
			return fmt.Errorf("embedded manifest %s", r.Errors[0])
		}
		origins = append(origins, origin{path, r.Objects})
		return nil
	})
	return origins, err
}
