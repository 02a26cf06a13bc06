package command

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rendered is what the chart makes of some values. It is a program of its own that says so:
// the engine of Helm and what it imports would be a fifth of all that is compiled for the race
// detector.
func rendered(t *testing.T, values string) []unstructured.Unstructured {
	t.Helper()
	c := exec.Command("go", "run", "../test/chart/show")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	c.Stdin = strings.NewReader(values)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(out); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
