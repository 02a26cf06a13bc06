package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestSchemaIsDocumented: what the schema allows stands, with its default and
// a comment, in values.yaml. (The reverse holds since the defaults pass the
// schema, which refuses unknown names.)
func TestSchemaIsDocumented(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var schema, defaults map[string]any
	if err := json.Unmarshal(read("values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(read("values.yaml"), &defaults); err != nil {
		t.Fatal(err)
	}
	definitions, _ := schema["$defs"].(map[string]any)
	var walk func(path string, schema, defaults map[string]any)
	walk = func(path string, schema, defaults map[string]any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema, _ = definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		properties, _ := schema["properties"].(map[string]any)
		if len(properties) > 0 && schema["additionalProperties"] != false {
			t.Errorf("%s: the schema lets unknown names pass", path)
		}
		for name := range maps.Keys(properties) {
			at := path + "." + name
			// global is Helm's own, and these ports have no default.
			if at == ".global" || strings.HasPrefix(path, ".proxy.") && (strings.HasSuffix(path, ".nodePorts") || strings.HasSuffix(path, ".hostPorts")) {
				continue
			}
			value, ok := defaults[name]
			if !ok {
				t.Errorf("%s is in the schema but not in values.yaml", at)
				continue
			}
			sub, _ := properties[name].(map[string]any)
			values, _ := value.(map[string]any)
			walk(at, sub, values)
		}
	}
	walk("", schema, defaults)
}
