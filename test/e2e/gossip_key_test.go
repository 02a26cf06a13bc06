package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/gossipkey"
	"quayside.io/test/lab"
)

// Each speaker says which gossip keys it has, as soon as it has them: the controller
// changes the key when all do.
func TestSpeakersSayWhichGossipKeysTheyHave(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	secrets := e.Kube().CoreV1().Secrets(lab.SystemNamespace)
	// write makes the file what change returns of it, and returns the words for its keys.
	write := func(change func(file []byte) []byte) (words []string) {
		t.Helper()
		s, err := secrets.Get(t.Context(), "quayside-members", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Data["key"] = change(s.Data["key"])
		if _, err := secrets.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		keys, err := gossipkey.Parse(s.Data["key"])
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			words = append(words, gossipkey.Print(key))
		}
		return words
	}
	said := func(want []string) {
		t.Helper()
		e.Eventually(settle, func() error {
			for _, n := range e.Nodes() {
				s, err := e.speakerStatus(n.Name())
				if err != nil {
					return err
				}
				if !slices.Equal(s.Status.GossipSecrets, want) {
					return fmt.Errorf("the speaker of %s has %q, want %q", n.Name(), s.Status.GossipSecrets, want)
				}
			}
			return nil
		})
	}
	said(write(func(file []byte) []byte { return append(bytes.Clone(file), "another secret of them\n"...) }))
	said(write(func(file []byte) []byte {
		first, second, _ := bytes.Cut(file, []byte("\n"))
		return slices.Concat(second, first, []byte("\n"))
	}))
	said(write(func(file []byte) []byte {
		_, own, _ := bytes.Cut(file, []byte("\n"))
		return own
	}))
}
