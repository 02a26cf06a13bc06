package exchange

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

// anything is whatever an Exchange may hold behind an interface.
type anything struct{}

func (anything) Finished(*Exchange, bool)   {}
func (anything) Handle(*Exchange)           {}
func (anything) Wants() int                 { return 0 }
func (anything) Body([]byte, bool) Verdict  { return Verdict{} }
func (anything) Response(*Response) Verdict { return Verdict{} }
func (anything) End()                       {}
func (anything) Gone() bool                 { return true }
func (anything) Read([]byte) (int, error)   { return 0, nil }
func (anything) Close() error               { return nil }

// fill gives v, and all that is in it, another value than zero.
func fill(t *testing.T, v reflect.Value, at string) {
	switch v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem(); v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.String:
		v.SetString("theirs")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 9))
		fill(t, v.Index(0), at+"[0]")
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), at)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Interface:
		if !reflect.TypeFor[anything]().Implements(v.Type()) {
			t.Fatalf("%s is a %v: give anything its methods", at, v.Type())
		}
		v.Set(reflect.ValueOf(anything{}))
	case reflect.Struct:
		switch p := v.Addr().Interface().(type) {
		case *time.Time:
			*p = time.Unix(1, 0)
		case *netip.AddrPort:
			*p = netip.MustParseAddrPort("192.0.2.1:1")
		default:
			for i := range v.NumField() {
				fill(t, v.Field(i), at+"."+v.Type().Field(i).Name)
			}
		}
	default:
		t.Fatalf("%s is a %v, which nobody fills", at, v.Type())
	}
}

// left calls tell for all in v that is not zero, but for memory of which nothing is used.
func left(v reflect.Value, at string, tell func(at string)) {
	switch {
	case v.Kind() == reflect.Slice && v.Len() == 0:
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() && v.Type() != reflect.TypeFor[netip.AddrPort]():
		for i := range v.NumField() {
			left(v.Field(i), at+"."+v.Type().Field(i).Name, tell)
		}
	case !v.IsZero():
		tell(at)
	}
}

// TestResetLeavesNothing of one request for the next one, whatever fields an Exchange will get.
func TestResetLeavesNothing(t *testing.T) {
	var ex Exchange
	fill(t, reflect.ValueOf(&ex).Elem(), "ex")
	full := 0
	left(reflect.ValueOf(ex), "ex", func(string) { full++ })
	if full < 50 {
		t.Fatalf("only %d fields were filled", full)
	}
	ex.Reset()
	left(reflect.ValueOf(ex), "ex", func(at string) { t.Errorf("%s is what it was for the request before", at) })
}

// TestAnAnswerOfOursIsOnlyThat: nothing of the response that it takes the place of goes with it.
func TestAnAnswerOfOursIsOnlyThat(t *testing.T) {
	for status, fault := range map[int]int{200: 0, 399: 0, 400: 400, 503: 503} {
		var ex Exchange
		fill(t, reflect.ValueOf(&ex.Response).Elem(), "ex.Response")
		ex.Answer(status, "ours")
		r := &ex.Response
		if r.Status != status || string(r.Text) != "ours" || r.Length != 4 || r.Body != nil || r.Reset != nil || r.Fault != fault || len(r.Trailer.Header.Fields())+len(r.Trailer.Announced) > 0 ||
			len(r.Header.Fields()) != 1 || string(r.Header.Get("Content-Type")) != "text/plain; charset=utf-8" {
			t.Errorf("%d: %+v", status, r)
		}
	}
}
