package filter

import (
	"encoding/asn1"
	"testing"
	"unicode/utf16"
)

// named is one part of a name; plus joins it to the one before.
type named struct {
	id    asn1.ObjectIdentifier
	tag   int
	value string
	plus  bool
}

func oid(n ...int) asn1.ObjectIdentifier { return n }

// encoded returns a name as it stands in a certificate.
func encoded(t *testing.T, parts ...named) []byte {
	t.Helper()
	var steps []relativeNameSET
	for _, p := range parts {
		a := attribute{p.id, asn1.RawValue{Tag: p.tag, Bytes: []byte(p.value)}}
		if p.plus {
			steps[len(steps)-1] = append(steps[len(steps)-1], a)
			continue
		}
		steps = append(steps, relativeNameSET{a})
	}
	der, err := asn1.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func bmp(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return string(b)
}

// What is wanted is what OpenSSL 3.0 prints of the same names by -nameopt RFC2253,
// which is what nginx sends.
func TestDistinguishedNames(t *testing.T) {
	cn, o, ou, c := oid(2, 5, 4, 3), oid(2, 5, 4, 10), oid(2, 5, 4, 11), oid(2, 5, 4, 6)
	const utf8String, printable, ia5, t61, bmpString = asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, asn1.TagT61String, asn1.TagBMPString
	for want, parts := range map[string][]named{
		"":                            nil,
		"CN=ann":                      {{cn, utf8String, "ann", false}},
		"CN=ann,O=Shop,C=DE":          {{c, printable, "DE", false}, {o, utf8String, "Shop", false}, {cn, utf8String, "ann", false}},
		"OU=b+OU=a,O=x":               {{o, utf8String, "x", false}, {ou, utf8String, "a", false}, {ou, utf8String, "b", true}},
		`CN=a\,b\+c\"d\\e\<f\>g\;h=i`: {{cn, utf8String, `a,b+c"d\e<f>g;h=i`, false}},
		`CN=\#1,O=a #b`:               {{o, utf8String, "a #b", false}, {cn, utf8String, "#1", false}},
		`CN=\  a \ `:                  {{cn, utf8String, "  a  ", false}},
		`CN=\ `:                       {{cn, utf8String, " ", false}},
		"CN=":                         {{cn, utf8String, "", false}},
		`CN=K\C3\A4se`:                {{cn, utf8String, "Käse", false}},
		`CN=K\C3\A4s`:                 {{cn, t61, "K\xe4s", false}},
		`CN=K\C3\A4`:                  {{cn, bmpString, bmp("Kä"), false}},
		`CN=x\0D\0Ay\7F\00`:           {{cn, utf8String, "x\r\ny\x7f\x00", false}},
		"emailAddress=a@b.c":          {{oid(1, 2, 840, 113549, 1, 9, 1), ia5, "a@b.c", false}},
		"UID=7,DC=example":            {{oid(0, 9, 2342, 19200300, 100, 1, 25), ia5, "example", false}, {oid(0, 9, 2342, 19200300, 100, 1, 1), utf8String, "7", false}},
		"title=Dr,GN=Ann,SN=Doe,street=W,serialNumber=1,postalCode=8": {{oid(2, 5, 4, 17), utf8String, "8", false}, {oid(2, 5, 4, 5), printable, "1", false},
			{oid(2, 5, 4, 9), utf8String, "W", false}, {oid(2, 5, 4, 4), utf8String, "Doe", false}, {oid(2, 5, 4, 42), utf8String, "Ann", false}, {oid(2, 5, 4, 12), utf8String, "Dr", false}},
		"1.2.3.4=#0C0178": {{oid(1, 2, 3, 4), utf8String, "x", false}},
	} {
		raw := encoded(t, parts...)
		if got := distinguishedName(raw, ""); got != want {
			t.Errorf("%v is %q, want %q", parts, got, want)
		}
	}
	if got, want := distinguishedName(encoded(t, named{o, utf8String, "CN=ann", false}), "="), `O=CN\=ann`; got != want {
		t.Errorf("what a pattern is searched in is %q, want %q", got, want)
	}
	if got, want := distinguishedName(encoded(t, named{cn, asn1.TagBoolean, "\xff", false}), ""), "CN=#0101FF"; got != want {
		t.Errorf("what is no text is %q, want %q", got, want) // OpenSSL does not read such a certificate
	}
	for _, broken := range []string{"\x30", "\x30\x03\x31\x01", "\x30\x00x", "\x04\x01x"} {
		if got := distinguishedName([]byte(broken), ""); got != "" {
			t.Errorf("%x is %q", broken, got)
		}
	}
}

// FuzzDistinguishedName: whatever stands in a certificate, the text is one value of
// a field.
func FuzzDistinguishedName(f *testing.F) {
	f.Add([]byte("\x30\x0d\x31\x0b\x30\x09\x06\x03\x55\x04\x03\x0c\x02a\n"))
	f.Add([]byte("\x30\x0e\x31\x0c\x30\x0a\x06\x03\x55\x04\x03\x1e\x03\x00a\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, c := range []byte(distinguishedName(raw, "=")) {
			if c < ' ' || c >= 0x7f {
				t.Fatalf("%x has the byte %#x", raw, c)
			}
		}
	})
}
