package route

import (
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
)

// Secrets are those that the Ingresses and the options name, whether or not they
// exist: what has to be watched for the next Table.
func (t *Table) Secrets() []snapshot.Key {
	keys := make([]snapshot.Key, 0, t.state.bySecret.Len()+1)
	for key := range t.state.bySecret.All() {
		keys = append(keys, key)
	}
	keys = t.appendNamed(keys, snapshot.Secret)
	if key := t.state.options.DefaultCertificate; key != (snapshot.Key{}) {
		keys = append(keys, key)
	}
	return keys
}

// ConfigMaps are those that the Ingresses and the options name, whether or not
// they exist, as Secrets are.
func (t *Table) ConfigMaps() []snapshot.Key {
	keys := t.appendNamed(nil, snapshot.ConfigMap)
	if key := t.state.options.ConfigMap; key != (snapshot.Key{}) {
		keys = append(keys, key)
	}
	for _, n := range t.state.global.named {
		keys = append(keys, n.key)
	}
	return keys
}

// Naming are the objects that name a Secret, in order.
func (t *Table) Naming(secret snapshot.Key) (all []snapshot.Ref) {
	for _, ix := range []struct {
		of  index
		key snapshot.Key
	}{{t.state.bySecret, secret}, {t.state.byObject, keyOf(refTo(snapshot.Secret, secret))}} {
		list, _ := ix.of.Get(ix.key)
		for key := range list.All() {
			u, _ := t.state.units.Get(key)
			all = append(all, u.ref)
		}
	}
	slices.SortFunc(all, compareRefs)
	return slices.Compact(all)
}

// DefaultSecret is the one with the default certificate; empty: none is named.
func (t *Table) DefaultSecret() snapshot.Key { return t.state.options.DefaultCertificate }

// appendNamed appends the objects of a kind that options of Ingresses name.
func (t *Table) appendNamed(keys []snapshot.Key, kind snapshot.Kind) []snapshot.Key {
	prefix := kind.String() + " "
	for key := range t.state.byObject.All() {
		if name, ok := strings.CutPrefix(key.Name, prefix); ok {
			keys = append(keys, snapshot.Key{Namespace: key.Namespace, Name: name})
		}
	}
	return keys
}

// SameReferences reports whether t and old, which may be nil, name the same
// objects; it may also say no where they do.
func (t *Table) SameReferences(old *Table) bool {
	return old != nil && t.state.bySecret == old.state.bySecret && t.state.byObject == old.state.byObject &&
		t.state.options.DefaultCertificate == old.state.options.DefaultCertificate && t.state.options.ConfigMap == old.state.options.ConfigMap &&
		slices.EqualFunc(t.state.global.named, old.state.global.named, func(a, b namedConfigMap) bool { return a.key == b.key })
}
