package snapshot

import "testing"

func TestReachTellsMissingFromUnread(t *testing.T) {
	shop, cart := Key{Namespace: "shop", Name: "tls"}, Key{Namespace: "cart", Name: "tls"}
	var all Cluster
	if !all.Reach(Secret).Covers(shop) {
		t.Error("a Cluster of objects does not know that it lacks one")
	}
	c := Unread()
	if c.Reach(Secret).Covers(shop) {
		t.Error("nothing was read, yet it is known what is missing")
	}
	for _, part := range []Key{shop, {Namespace: "shop"}, {}} {
		seen := c.WithReach(Secret, part)
		if !seen.Reach(Secret).Covers(shop) || seen.Reach(Secret).Covers(cart) != (part == Key{}) {
			t.Errorf("read %q: covers %s %v, %s %v", part, shop, seen.Reach(Secret).Covers(shop), cart, seen.Reach(Secret).Covers(cart))
		}
		if seen.Reach(ConfigMap).Covers(shop) || !seen.Changed(c, Secret) || seen.Changed(c, ConfigMap) {
			t.Errorf("read %q: one kind speaks for another", part)
		}
		if again := seen.WithReach(Secret, part); again != seen {
			t.Errorf("read %q twice: that is news", part)
		}
		if back := seen.WithoutReach(Secret, part); back.Reach(Secret).Covers(shop) || back.Reach(Secret) != c.Reach(Secret) {
			t.Errorf("%q is read no more, and covered", part)
		} else if !back.Changed(seen, Secret) || back.Changed(seen, ConfigMap) {
			t.Errorf("%q is read no more, and who reads Secrets is not told", part)
		} else if again := back.WithoutReach(Secret, part); again != back {
			t.Errorf("%q is read no more, twice: that is news", part)
		}
	}
}
