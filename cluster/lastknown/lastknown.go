package lastknown

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"quayside.io/cluster/snapshot"
)

// magic begins every file; its number is that of the format.
const magic = "quayside last known 1\n"

// Known is what was known of a cluster at one moment.
type Known struct {
	// Of says of which cluster, and by whom: nobody else may use it.
	Of string
	// At is the last moment at which all of it was true, in milliseconds.
	At      time.Time
	Parts   []Part
	Objects []snapshot.Object
}

// Part is a part of a kind that had been seen, or was known to be unreadable.
type Part struct {
	Kind snapshot.Kind
	// Key names one object; without a name, all of a namespace; without either, all.
	Key snapshot.Key
	// Whole says that an object of it which is not there does not exist.
	Whole bool
}

// errTruncated is what a reader says of a file that ends too soon.
var errTruncated = errors.New("it ends too soon")

// Encode returns k as the content of a file.
func Encode(k *Known) ([]byte, error) {
	b := append([]byte(magic), make([]byte, sha256.Size)...)
	b = binary.BigEndian.AppendUint64(b, uint64(k.At.UnixMilli()))
	b = appendText(b, k.Of)
	b = binary.AppendUvarint(b, uint64(len(k.Parts)))
	for _, p := range k.Parts {
		b = appendText(appendText(appendText(b, p.Kind.String()), p.Key.Namespace), p.Key.Name)
		whole := byte(0)
		if p.Whole {
			whole = 1
		}
		b = append(b, whole)
	}
	for _, o := range k.Objects {
		kind, ok := snapshot.KindOf(o)
		if !ok {
			return nil, fmt.Errorf("no place for a %T", o)
		}
		text, err := marshal(o)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, snapshot.KeyOf(o), err)
		}
		b = append(binary.AppendUvarint(appendText(b, kind.String()), uint64(len(text))), text...)
	}
	sum := sha256.Sum256(b[len(magic)+sha256.Size:])
	copy(b[len(magic):], sum[:])
	return b, nil
}

// Decode reads what Encode wrote, and refuses everything else.
func Decode(b []byte) (*Known, error) {
	if len(b) < len(magic)+sha256.Size || string(b[:len(magic)]) != magic {
		return nil, errors.New("it is of another format, or of another version's")
	}
	rest := b[len(magic)+sha256.Size:]
	if sha256.Sum256(rest) != [sha256.Size]byte(b[len(magic):]) {
		return nil, errors.New("its checksum is wrong")
	}
	r := &reader{rest: rest, kinds: map[string]snapshot.Kind{}}
	for kind := range snapshot.Kinds() {
		r.kinds[kind.String()] = kind
	}
	k := &Known{At: time.UnixMilli(int64(binary.BigEndian.Uint64(r.take(8)))), Of: string(r.text())}
	for n := r.number(); n > 0 && r.err == nil; n-- {
		k.Parts = append(k.Parts, r.part())
	}
	for len(r.rest) > 0 && r.err == nil {
		if o := r.object(); r.err == nil {
			k.Objects = append(k.Objects, o)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return k, nil
}

// reader takes a file apart; after an error it returns nothing.
type reader struct {
	rest  []byte
	kinds map[string]snapshot.Kind
	err   error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// take returns the next n bytes, or as many zeros if they are not there and n is small.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail(errTruncated)
		return make([]byte, min(n, 8))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() []byte { return r.take(r.number()) }

func (r *reader) kind() snapshot.Kind {
	name := r.text()
	kind, ok := r.kinds[string(name)]
	if !ok {
		r.fail(fmt.Errorf("kind %.40q is not known", name))
	}
	return kind
}

func (r *reader) part() Part {
	p := Part{Kind: r.kind(), Key: snapshot.Key{Namespace: string(r.text()), Name: string(r.text())}}
	switch whole := r.take(1)[0]; whole {
	case 0, 1:
		p.Whole = whole == 1
	default:
		r.fail(fmt.Errorf("a part of %s is neither whole nor not: %d", p.Kind, whole))
	}
	return p
}

func (r *reader) object() snapshot.Object {
	kind := r.kind()
	text := r.text()
	if r.err != nil {
		return nil
	}
	resource := kind.Resource()
	o := resource.New()
	if err := unmarshal(o, text); err != nil {
		r.fail(fmt.Errorf("a %s: %w", kind, err))
		return nil
	}
	if o.GetName() == "" || (o.GetNamespace() != "") != resource.Namespaced {
		r.fail(fmt.Errorf("a %s is called %.80q", kind, snapshot.KeyOf(o)))
		return nil
	}
	return o
}

// proto is what the types of Kubernetes implement, and ours do not.
type proto interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func marshal(o snapshot.Object) ([]byte, error) {
	if p, ok := o.(proto); ok {
		return p.Marshal()
	}
	return json.Marshal(o)
}

func unmarshal(o snapshot.Object, text []byte) error {
	if p, ok := o.(proto); ok {
		return p.Unmarshal(text)
	}
	return json.Unmarshal(text, o)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
