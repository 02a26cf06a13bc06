package cluster

import (
	"crypto/sha256"
	"runtime"

	"golang.org/x/sync/errgroup"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// digest tells one text from another. Of documents its first half does.
type digest [sha256.Size]byte

func digestOf(text []byte) digest { return sha256.Sum256(text) }

// filePart is a document of a file: the objects that are next in the file's.
type filePart struct {
	digest  [16]byte // zero if there was something to say about it
	objects int32
}

// known are the documents that need not be decoded again.
func (f *cachedFile) known() map[[16]byte][]snapshot.Object {
	known := make(map[[16]byte][]snapshot.Object, len(f.parts))
	rest := f.objects
	for _, p := range f.parts {
		if p.digest != ([16]byte{}) {
			known[p.digest] = rest[:p.objects:p.objects]
		}
		rest = rest[p.objects:]
	}
	return known
}

// partsAtOnce is how many documents one goroutine decodes before it takes more.
const partsAtOnce = 64

// decodeParts reads a file. Its documents are read beside each other, and those that
// are known not at all.
func decodeParts(name string, text []byte, known map[[16]byte][]snapshot.Object) (manifest.Result, []filePart) {
	documents := manifest.Split(text)
	results, parts := make([]manifest.Result, len(documents)), make([]filePart, len(documents))
	decoder := manifest.NewDecoder()
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for first := 0; first < len(documents); first += partsAtOnce {
		g.Go(func() error {
			for i := first; i < min(first+partsAtOnce, len(documents)); i++ {
				results[i], parts[i] = decodePart(decoder, name, documents[i], known)
			}
			return nil
		})
	}
	_ = g.Wait() // nothing of it fails: what is wrong is in the results
	return manifest.Join(results), parts
}

// decodePart reads a document that is not known.
func decodePart(decoder *manifest.Decoder, name string, document manifest.Document, known map[[16]byte][]snapshot.Object) (manifest.Result, filePart) {
	sum := digestOf(document.Text)
	short := [16]byte(sum[:])
	if objects, ok := known[short]; ok {
		return manifest.Result{Objects: objects}, filePart{short, int32(len(objects))}
	}
	r := decoder.Decode(name, document)
	stripAll(r.Objects)
	if len(r.Errors)+len(r.Notes) > 0 {
		short = [16]byte{}
	}
	return r, filePart{short, int32(len(r.Objects))}
}

// stripAll removes in place what only a server sets, and what is never read.
func stripAll(objects []snapshot.Object) []snapshot.Object {
	for _, o := range objects {
		strip(o).SetResourceVersion("")
	}
	return objects
}

// faultsOf turns a reading into faults: errors keep the file's last good version
// in force, notes do not.
func faultsOf(r manifest.Result, keepsOld bool) []snapshot.Problem {
	faults := make([]snapshot.Problem, 0, len(r.Errors)+len(r.Notes))
	for _, p := range r.Errors {
		if keepsOld {
			p.Message += keepsGood
		}
		faults = append(faults, p)
	}
	return append(faults, r.Notes...)
}
