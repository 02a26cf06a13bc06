package migrate

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yamlstream "k8s.io/apimachinery/pkg/util/yaml"

	"quayside.io/controller/manifest"
)

var update = flag.Bool("update", false, "write the outcomes into the files")

// What people have beside what they get. All of it is read by the house.
func TestWhatPeopleHave(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, in := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(in), ".in.yaml"), func(t *testing.T) {
			got := migrated(t, in)
			if d := manifest.Decode("out", got); len(d.Errors)+len(d.Notes) > 0 {
				t.Errorf("the outcome is not ours: %v %v", d.Errors, d.Notes)
			}
			golden := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("wanted\n%s\ngot\n%s", want, got)
			}
		})
	}
}

func migrated(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m Migration
	if err := m.Read(file, data); err != nil {
		t.Fatal(err)
	}
	return printed(t, m.Result())
}

// printed is r as YAML, in which kubectl finds the objects of r and no other.
func printed(t *testing.T, r Result) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteYAML(&out); err != nil {
		t.Fatal(err)
	}
	decoder := yamlstream.NewYAMLOrJSONDecoder(bytes.NewReader(out.Bytes()), 4096)
	for n := 0; ; n++ {
		var o Object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF) && n == len(r.Objects):
			return out.Bytes()
		case errors.Is(err, io.EOF):
			t.Fatalf("kubectl finds %d objects, want %d in\n%s", n, len(r.Objects), out.Bytes())
		case err != nil:
			t.Fatalf("%v in\n%s", err, out.Bytes())
		case o.Kind == "": // comments alone
			n--
		case n >= len(r.Objects) || o.Kind != r.Objects[n].Kind || !maps.Equal(o.Metadata.Annotations, r.Objects[n].Metadata.Annotations):
			t.Fatalf("kubectl finds %+v as object %d in\n%s", o, n+1, out.Bytes())
		}
	}
}

// The chart's fixtures of every MetalLB object lose nothing on the way.
func TestEveryMetalLBObjectCarriesOver(t *testing.T) {
	files, err := filepath.Glob("../../test/chart/testdata/metallb/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("fixtures: %v, %v", files, err)
	}
	for _, file := range files {
		if out := migrated(t, file); bytes.Contains(out, []byte("no equivalent")) {
			t.Errorf("%s:\n%s", file, out)
		}
	}
}

// One bad document is named and takes nothing else with it.
func TestBadDocuments(t *testing.T) {
	var m Migration
	err := m.Read("mixed.yaml", []byte(`
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: good}
spec: {addresses: [10.0.0.0/28]}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: bad}
spec: {addresses: 10.0.0.0/28}
---
{kind: IPAddressPool}
---
apiVersion: metallb.io/v1beta1
kind: AddressPool
metadata: {name: odd}
spec: {protocol: carrier-pigeon}
`))
	for _, want := range []string{"mixed.yaml: document 2: metallb.io/v1beta1 IPAddressPool bad: spec:", "document 3: apiVersion and kind are required", `document 4: metallb.io/v1beta1 AddressPool odd: protocol "carrier-pigeon": want layer2 or bgp`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error\n%v\nlacks %q", err, want)
		}
	}
	if r := m.Result(); len(r.Objects) == 0 || r.Objects[0].Metadata.Name != "good" {
		t.Errorf("%+v", r)
	}
}

// One object that cannot be written is named and takes nothing else with it.
func TestBadObjects(t *testing.T) {
	r := Result{Objects: []Object{{Kind: "Odd", Metadata: Meta{Name: "bad"}, Spec: func() {}}, {Kind: "Even", Metadata: Meta{Name: "good"}}}}
	var out bytes.Buffer
	if err := r.WriteYAML(&out); err == nil || !strings.Contains(err.Error(), "Odd bad: ") {
		t.Errorf("error %v does not name the object", err)
	}
	if !strings.Contains(out.String(), "name: good") {
		t.Errorf("the other is lost:\n%s", out.String())
	}
}

// FuzzRead takes anything: no panic, and what comes out is ours.
func FuzzRead(f *testing.F) {
	inputs, _ := filepath.Glob("testdata/*.in.yaml")
	for _, in := range inputs {
		data, err := os.ReadFile(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Migration
		_ = m.Read("fuzz", data) // bad documents are part of the game
		out := printed(t, m.Result())
		if d := manifest.Decode("out", out); len(d.Errors) > 0 {
			t.Errorf("%v in\n%s", d.Errors, out)
		}
	})
}
