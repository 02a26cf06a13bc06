// Command show prints what the chart makes of a values file on the standard input, as a
// list of objects in JSON: for tests that live in another module, or are compiled for the
// race detector without the engine of Helm.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quayside.io/test/chart"
)

func main() {
	if err := show(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "show:", err)
		os.Exit(1)
	}
}

func show(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return err
	}
	_, objects, err := chart.Render("quayside", "quayside-system", values)
	if err != nil {
		return err
	}
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range objects {
		list.Items = append(list.Items, *object)
	}
	return json.NewEncoder(out).Encode(list.UnstructuredContent())
}
