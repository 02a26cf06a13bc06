package frame

import (
	"io"

	"golang.org/x/net/http2/hpack"
)

// RestedInput is what of an Input must outlive a rest: the fields that later blocks may refer
// to (RFC 7541 section 2.3.2). In a decoder they take four times as much, and that nothing
// refers to any takes half a kilobyte.
type RestedInput struct {
	fields  string         // as a field block that adds them to an empty table
	decoder *hpack.Decoder // instead, where it is more than fields; nil: it is not
}

// firstAdded is the number of the latest field that was added (RFC 7541 section 2.3.3).
const firstAdded = 62

// Rest returns what is to be kept. The Input is not used again; nothing may be buffered, nor a
// field block be open.
func (in *Input) Rest() RestedInput {
	if in.resized { // by how much, a decoder does not tell
		in.Decoder.SetEmitFunc(func(hpack.HeaderField) {})
		return RestedInput{decoder: in.Decoder}
	}
	var fields []hpack.HeaderField
	in.Decoder.SetMaxStringLength(0)
	in.Decoder.SetEmitEnabled(true)
	in.Decoder.SetEmitFunc(func(f hpack.HeaderField) { fields = append(fields, f) })
	var block []byte
	for n := firstAdded; ; n++ {
		block = appendInt(block[:0], indexed, 7, n)
		if _, err := in.Decoder.Write(block); err != nil { // there are no more
			break
		}
	}
	block = block[:0]
	for i := len(fields) - 1; i >= 0; i-- { // the oldest first
		block = appendText(append(block, added), []byte(fields[i].Name))
		block = appendText(block, []byte(fields[i].Value))
	}
	return RestedInput{fields: string(block)}
}

// Input returns one that goes on; for its arguments see NewInput.
func (k RestedInput) Input(r io.Reader, longest int, field func(hpack.HeaderField)) Input {
	if k.decoder != nil {
		k.decoder.SetEmitFunc(field)
		in := newInput(r, longest, k.decoder)
		in.resized = true
		return in
	}
	in := NewInput(r, longest, field)
	in.Decoder.SetEmitEnabled(false)
	in.Decoder.Write([]byte(k.fields)) // which is well formed
	in.Decoder.Close()
	in.Decoder.SetEmitEnabled(true)
	return in
}
