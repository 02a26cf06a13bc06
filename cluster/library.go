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

// library reads the files and remembers the last good version of each.
type library struct {
	paths []string
	books map[string]*book
}

// book is one file.
type book struct {
	digest  [sha256.Size]byte // of the text last read, good or not
	objects []snapshot.Object // of the last good version
	faults  []snapshot.Problem
	read    bool // at least once
	// emptied is when the file was first seen empty or missing though it had
	// objects before. An editor may be writing it: that is believed only after
	// recheck, however many looks there are meanwhile. Zero: it was not seen so.
	emptied time.Time
}

func newLibrary(paths []string) *library {
	clean := make([]string, len(paths))
	for i, p := range paths {
		clean[i] = filepath.Clean(p)
	}
	return &library{paths: clean, books: map[string]*book{}}
}

// scan reads what has changed. It reports whether anything did, and whether
// another look is needed soon.
func (l *library) scan(now time.Time) (changed, again bool) {
	found := map[string]bool{}
	for _, p := range l.paths {
		for _, name := range list(p) {
			found[name] = true
			if l.books[name] == nil {
				l.books[name] = &book{}
			}
			c, a := l.books[name].reread(name, now)
			changed, again = changed || c, again || a
		}
	}
	for name, b := range l.books {
		if found[name] {
			continue
		}
		switch {
		case slices.Contains(l.paths, name):
			// Asked for by name: its disappearance is a fault, not a wish.
			changed = b.fail(name, "the file is gone") || changed
		case len(b.objects) == 0 || b.empty(now):
			delete(l.books, name)
			changed = true
		default:
			again = true
		}
	}
	return changed, again
}

// reread reads the file if its text has changed.
func (b *book) reread(name string, now time.Time) (changed, again bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return b.fail(name, err.Error()), false
	}
	digest := sha256.Sum256(text)
	if b.read && digest == b.digest {
		b.emptied = time.Time{}
		return false, false
	}
	if len(bytes.TrimSpace(text)) == 0 && len(b.objects) > 0 && !b.empty(now) {
		return false, true
	}
	r := manifest.Decode(name, text)
	keepsOld := b.read && len(r.Errors) > 0 && len(b.objects) > 0
	b.digest, b.emptied, b.read = digest, time.Time{}, true
	b.faults = faultsOf(r, keepsOld)
	if !keepsOld {
		b.objects = r.Objects
	}
	return true, false
}

// empty notes that the file is empty or missing, and reports whether it has been
// for long enough to be believed.
func (b *book) empty(now time.Time) bool {
	if b.emptied.IsZero() {
		b.emptied = now
	}
	return now.Sub(b.emptied) >= recheck
}

// fail keeps the last good version of a file that cannot be read.
func (b *book) fail(name, why string) (changed bool) {
	b.digest = [sha256.Size]byte{} // whatever comes next is news
	if len(b.objects) > 0 {
		why += keepsGood
	}
	faults := []snapshot.Problem{{
		Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: manifest.Unreadable,
		Message: why}}
	if slices.Equal(b.faults, faults) {
		return false
	}
	b.faults = faults
	return true
}

// origins returns what every file says, in the order of paths and names.
func (l *library) origins() (origins []origin, faults []snapshot.Problem) {
	seen := map[string]bool{}
	take := func(name string) {
		if b := l.books[name]; b != nil && !seen[name] {
			seen[name] = true
			origins = append(origins, origin{name, b.objects})
			faults = append(faults, b.faults...)
		}
	}
	for _, p := range l.paths {
		take(p)
		var names []string
		for name := range l.books {
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

// readEmbedded reads every manifest in an embedded file system. These are ours,
// so that a fault in one is an error.
func readEmbedded(files fs.FS) ([]origin, error) {
	if files == nil {
		return nil, nil
	}
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
