package chart

import (
	"bytes"
	"os"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// A packed chart installs what the folder does, and names the image of its version.
func TestPackedChart(t *testing.T) {
	archive, err := Pack(t.TempDir(), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	if m := packed.Metadata; m.Version != "1.2.3" || m.AppVersion != "v1.2.3" {
		t.Errorf("version %s of the chart, %s of the image", m.Version, m.AppVersion)
	}
	r, err := NewRelease("edge", "quayside-system", archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	crds, objects, err := Render("edge", "quayside-system", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Objects) != len(objects) || len(r.CRDs) != len(crds) {
		t.Errorf("%d objects and %d CRDs, from the folder %d and %d", len(r.Objects), len(r.CRDs), len(objects), len(crds))
	}
	workloads, err := Workloads(r.Objects)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range workloads {
		if image := w.Template.Spec.Containers[0].Image; image != "quayside.io/quayside:v1.2.3" {
			t.Errorf("%s runs %s", name, image)
		}
	}
	if _, err := Pack(t.TempDir(), "dev"); err == nil {
		t.Error("Helm takes no chart of version dev")
	}
}

// TestSameArchive: the archive depends on the chart, not on when it was packed.
func TestSameArchive(t *testing.T) {
	var archives [][]byte
	for i := range 2 {
		if i > 0 {
			time.Sleep(1100 * time.Millisecond) // an archive counts in seconds
		}
		path, err := Pack(t.TempDir(), "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, data)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("packed again, it is another")
	}
}
