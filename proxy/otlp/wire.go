package otlp

import (
	"encoding/binary"
	"unicode/utf8"
)

// The types of fields (https://protobuf.dev/programming-guides/encoding/).
const (
	typeVarint = 0
	type64     = 1
	typeBytes  = 2
	type32     = 5
)

func appendTag(dst []byte, field, of int) []byte {
	return binary.AppendUvarint(dst, uint64(field<<3|of))
}

func appendUint(dst []byte, field int, n uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, field, typeVarint), n)
}

func appendFixed64(dst []byte, field int, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(dst, field, type64), n)
}

func appendFixed32(dst []byte, field int, n uint32) []byte {
	return binary.LittleEndian.AppendUint32(appendTag(dst, field, type32), n)
}

func appendBytes[S string | []byte](dst []byte, field int, b S) []byte {
	dst = binary.AppendUvarint(appendTag(dst, field, typeBytes), uint64(len(b)))
	return append(dst, b...)
}

// begin and end stand around the fields of a message that is one itself.
func begin(dst []byte, field int) (b []byte, at int) {
	dst = appendTag(dst, field, typeBytes)
	return dst, len(dst)
}

// end puts the length in front of what came since begin.
func end(b []byte, at int) []byte {
	var length [binary.MaxVarintLen64]byte
	size := len(b) - at
	n := binary.PutUvarint(length[:], uint64(size))
	b = append(b, length[:n]...)
	copy(b[at+n:], b[at:at+size])
	copy(b[at:], length[:n])
	return b
}

// appendText appends a text, which must be UTF-8 or the whole message is refused: what
// is none becomes U+FFFD. It is cut where it is too long.
func appendText[S string | []byte](dst []byte, field int, text S) []byte {
	dst, at := begin(dst, field)
	if len(text) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			dst = append(dst, text[i])
			i++
			continue
		}
		r, size := decodeRune(text[i:])
		dst = utf8.AppendRune(dst, r)
		i += size
	}
	return end(dst, at)
}

func decodeRune[S string | []byte](text S) (rune, int) {
	var b [utf8.UTFMax]byte
	return utf8.DecodeRune(b[:copy(b[:], text)])
}

// The fields of common.proto: KeyValue and AnyValue.
const (
	keyValueKey   = 1
	keyValueValue = 2
	anyString     = 1
	anyInt        = 3
)

// attribute appends one to a span; attributeInt is that of numbers.
func attribute[S string | []byte](dst []byte, key string, value S) []byte {
	return keyed(dst, spanAttributes, key, value)
}

func attributeInt(dst []byte, key string, value int64) []byte {
	dst, at := begin(dst, spanAttributes)
	dst = appendBytes(dst, keyValueKey, key)
	dst, in := begin(dst, keyValueValue)
	dst = appendUint(dst, anyInt, uint64(value))
	return end(end(dst, in), at)
}

// keyed appends a KeyValue as a field.
func keyed[S string | []byte](dst []byte, field int, key string, value S) []byte {
	dst, at := begin(dst, field)
	dst = appendBytes(dst, keyValueKey, key)
	dst, in := begin(dst, keyValueValue)
	dst = appendText(dst, anyString, value)
	return end(end(dst, in), at)
}
