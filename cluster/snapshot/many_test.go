package snapshot

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Many objects at once are entered as they are one by one: the last of several of one
// name counts, and the index of slices follows.
func TestManyAtOnceAreOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) (objects []Object) {
			for range rapid.IntRange(0, most).Draw(t, "objects") {
				name := fmt.Sprint("o", rapid.IntRange(0, 20).Draw(t, "name"))
				if rapid.Bool().Draw(t, "slice") {
					objects = append(objects, endpointSlice(name, rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "service")))
				} else {
					objects = append(objects, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
				}
			}
			return objects
		}
		before := Of(draw(40)...)
		objects := draw(12)
		want, got := before.With(objects...), *before
		got.putAll(objects)
		for kind := range Kinds() {
			if !slices.Equal(slices.Collect(want.Objects(kind)), slices.Collect(got.Objects(kind))) {
				t.Fatalf("%s: one by one and at once differ", kind)
			}
		}
		for _, service := range []string{"a", "b", "c"} {
			if k := (Key{"ns", service}); !slices.Equal(want.SlicesOf(k), got.SlicesOf(k)) {
				t.Fatalf("SlicesOf(%s): one by one and at once differ", k)
			}
		}
		if want.generation != got.generation {
			t.Fatalf("generations %v, want %v", got.generation, want.generation)
		}
	})
}

func TestVeryManyObjects(t *testing.T) {
	var objects []Object
	for i := range manyObjects {
		objects = append(objects, endpointSlice(fmt.Sprint("s", i), "a"))
	}
	c := Of(objects...)
	if n := len(c.SlicesOf(Key{"ns", "a"})); c.EndpointSlices.Len() != manyObjects || n != manyObjects {
		t.Errorf("%d slices, %d of the Service", c.EndpointSlices.Len(), n)
	}
	if c.With(objects[:manyObjects/2]...).EndpointSlices.Len() != manyObjects {
		t.Error("half of them again are not the same")
	}
}
