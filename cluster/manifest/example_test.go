package manifest_test

import (
	"fmt"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// What cannot be read is named with its document and line, and keeps nobody else
// from being read.
func Example() {
	r := manifest.Decode("shop.yaml", []byte(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {ports: [{prot: 5432}]}
`))
	for _, o := range r.Objects {
		fmt.Println(snapshot.RefOf(o))
	}
	for _, p := range r.Errors {
		fmt.Println(p)
	}
	// Output:
	// Service default/web
	// File shop.yaml: Unreadable: document 2: line 10: unknown field "spec.ports[0].prot"
}
