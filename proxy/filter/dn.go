package filter

import (
	"encoding/asn1"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// attribute is one part of a distinguished name.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// relativeNameSET is one step of a name; encoding/asn1 knows a SET by the name of
// the type.
type relativeNameSET []attribute

// distinguishedName returns a name as nginx shows it (RFC 2253, by OpenSSL's flags of
// that name): the last part first, and nothing that could end the field that it is
// put into. It is empty where the name is malformed. The characters in also are
// escaped too.
func distinguishedName(raw []byte, also string) string {
	var steps []relativeNameSET
	if rest, err := asn1.Unmarshal(raw, &steps); err != nil || len(rest) > 0 {
		return ""
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		for j := len(steps[i]) - 1; j >= 0; j-- {
			switch {
			case j < len(steps[i])-1:
				b.WriteByte('+')
			case b.Len() > 0:
				b.WriteByte(',')
			}
			a := &steps[i][j]
			name, known := attributeName(a.Type)
			text, isText := textOf(&a.Value)
			b.WriteString(name + "=")
			if known && isText {
				escapeValue(&b, text, also)
			} else {
				fmt.Fprintf(&b, "#%X", a.Value.FullBytes)
			}
		}
	}
	return b.String()
}

// attributeName returns OpenSSL's short name of a part, or its number.
func attributeName(id asn1.ObjectIdentifier) (name string, known bool) {
	for _, a := range [...]struct{ id, name string }{
		{"2.5.4.3", "CN"}, {"2.5.4.4", "SN"}, {"2.5.4.5", "serialNumber"}, {"2.5.4.6", "C"}, {"2.5.4.7", "L"}, {"2.5.4.8", "ST"},
		{"2.5.4.9", "street"}, {"2.5.4.10", "O"}, {"2.5.4.11", "OU"}, {"2.5.4.12", "title"}, {"2.5.4.13", "description"},
		{"2.5.4.15", "businessCategory"}, {"2.5.4.17", "postalCode"}, {"2.5.4.18", "postOfficeBox"}, {"2.5.4.20", "telephoneNumber"},
		{"2.5.4.41", "name"}, {"2.5.4.42", "GN"}, {"2.5.4.43", "initials"}, {"2.5.4.44", "generationQualifier"}, {"2.5.4.46", "dnQualifier"},
		{"2.5.4.65", "pseudonym"}, {"2.5.4.97", "organizationIdentifier"}, {"1.2.840.113549.1.9.1", "emailAddress"},
		{"1.2.840.113549.1.9.2", "unstructuredName"}, {"0.9.2342.19200300.100.1.1", "UID"}, {"0.9.2342.19200300.100.1.3", "mail"},
		{"0.9.2342.19200300.100.1.25", "DC"}, {"1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"}, {"1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"},
		{"1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"},
	} {
		if a.id == id.String() {
			return a.name, true
		}
	}
	return id.String(), false
}

// textOf returns a value as UTF-8, if it is of a type that holds text.
func textOf(v *asn1.RawValue) (string, bool) {
	const visible = 26
	if v.Class != asn1.ClassUniversal {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String:
		return string(v.Bytes), utf8.Valid(v.Bytes)
	case asn1.TagPrintableString, asn1.TagNumericString, asn1.TagIA5String, asn1.TagT61String, visible, asn1.TagUTCTime, asn1.TagGeneralizedTime:
		runes := make([]rune, len(v.Bytes)) // each byte is a character of Latin-1
		for i, c := range v.Bytes {
			runes[i] = rune(c)
		}
		return string(runes), true
	case asn1.TagBMPString:
		units := make([]uint16, len(v.Bytes)/2)
		for i := range units {
			units[i] = uint16(v.Bytes[2*i])<<8 | uint16(v.Bytes[2*i+1])
		}
		return string(utf16.Decode(units)), len(v.Bytes)%2 == 0
	}
	return "", false
}

// escapeValue appends a value. What means something in a name has a backslash, and
// what is not ASCII is written in hexadecimal digits.
func escapeValue(b *strings.Builder, s, also string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(b, `\%02X`, c)
			continue
		case strings.IndexByte(`,+"\<>;`, c) >= 0, strings.IndexByte(also, c) >= 0, i == 0 && (c == '#' || c == ' '), i == len(s)-1 && c == ' ':
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
}
