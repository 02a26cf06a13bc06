package command

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/command/admin"
	"quayside.io/command/explain"
	"quayside.io/controller"
	"quayside.io/proxy"
	"quayside.io/speaker"
)

// fill gives everything in v some value, or none.
func fill(v reflect.Value, r *rand.Rand, depth int) {
	if depth > 8 || !v.CanSet() || r.IntN(4) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(1 << 30))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(1 << 7))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.String:
		v.SetString([]string{"", "a", "<b>", "ü\n\"", "x/y"}[r.IntN(5)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), r, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			fill(v.Index(i), r, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, r, depth+1)
		fill(value, r, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<31), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), r, depth+1)
		}
	}
}

// What /state and /trace stream is, for the states of every process, what
// encoding/json writes in one piece.
func TestStatesAreStreamedAsTheyAreWritten(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[proxy.State](), reflect.TypeFor[speaker.State](), reflect.TypeFor[explain.Path](),
		reflect.TypeFor[struct {
			controller.State
			*explain.Report
		}](),
		reflect.TypeFor[struct {
			*explain.Report
			Proxy any `json:"proxy"`
		}](),
	} {
		for seed := range uint64(200) {
			value := reflect.New(of)
			fill(value.Elem(), rand.New(rand.NewPCG(seed, 1)), 0)
			want, err := json.MarshalIndent(value.Interface(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			s := admin.New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			s.State(value.Interface)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/state", nil))
			if got := w.Body.String(); got != string(want)+"\n" {
				t.Fatalf("%s, seed %d (-want +got):\n%s", of, seed, cmp.Diff(string(want)+"\n", got))
			}
		}
	}
}
