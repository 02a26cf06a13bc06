package route

import (
	"strings"

	"quayside.io/cluster/snapshot"
)

// Referenced returns the kinds of which only those objects are watched that
// References names.
func Referenced() []snapshot.Kind { return []snapshot.Kind{snapshot.Secret, snapshot.ConfigMap} }

// References are the objects of a kind that the Ingresses and the options name,
// whether or not they exist: what has to be watched for the next Table.
func (t *Table) References(kind snapshot.Kind) []snapshot.Key {
	var keys []snapshot.Key
	for key := range t.state.byObject.All() {
		if name, ok := strings.CutPrefix(key.Name, kind.String()+" "); ok {
			keys = append(keys, snapshot.Key{Namespace: key.Namespace, Name: name})
		}
	}
	if kind != snapshot.Secret {
		return keys
	}
	for key := range t.state.bySecret.All() {
		keys = append(keys, key)
	}
	if key := t.state.options.DefaultCertificate; key != (snapshot.Key{}) {
		keys = append(keys, key)
	}
	return keys
}

// SameReferences reports whether t and old, which may be nil, name the same
// objects; it may also say no where they do.
func (t *Table) SameReferences(old *Table) bool {
	return old != nil && t.state.bySecret == old.state.bySecret && t.state.byObject == old.state.byObject &&
		t.state.options.DefaultCertificate == old.state.options.DefaultCertificate
}
