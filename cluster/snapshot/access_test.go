package snapshot_test

import (
	"reflect"
	"testing"

	"quayside.io/cluster/snapshot"
)

// Every field of Cluster that holds objects must be reachable by kind, so the
// test finds the fields itself and does not list the kinds a second time.
func TestEveryKindIsReachableByKind(t *testing.T) {
	seen := map[reflect.Type]bool{}
	cluster := reflect.TypeFor[snapshot.Stores]()
	for i := range cluster.NumField() {
		get, ok := reflect.PointerTo(cluster.Field(i).Type).MethodByName("Get")
		if !ok || !cluster.Field(i).IsExported() {
			continue
		}
		value := get.Type.Out(0)
		o := reflect.New(value.Elem()).Interface().(snapshot.Object)
		o.SetNamespace("a")
		o.SetName("b")
		kind, ok := snapshot.KindOf(o)
		if !ok {
			t.Errorf("%s: KindOf knows no %s", cluster.Field(i).Name, value)
			continue
		}
		c := snapshot.Of(o)
		if got, ok := c.Get(kind, snapshot.KeyOf(o)); !ok || got != o {
			t.Errorf("%s: Get returned %v, %v", kind, got, ok)
		}
		if got, ok := c.Get(kind, snapshot.Key{Name: "other"}); ok || got != nil {
			t.Errorf("%s: Get of a missing key returned %v, %v", kind, got, ok)
		}
		n := 0
		for got := range c.Objects(kind) {
			if n++; got != o {
				t.Errorf("%s: Objects yielded %v", kind, got)
			}
		}
		if n != 1 {
			t.Errorf("%s: Objects yielded %d objects, want 1", kind, n)
		}
		seen[value] = true
	}
	n := 0
	for range snapshot.Kinds() {
		n++
	}
	if n != len(seen) {
		t.Errorf("Kinds yields %d kinds, Cluster has %d", n, len(seen))
	}
}
