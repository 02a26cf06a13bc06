package l2

import "testing"

// BenchmarkAnswer is the work between a question's arrival and its answer.
func BenchmarkAnswer(b *testing.B) {
	a, out := newTestAnswerer(), make([]byte, 128)
	q4, q6 := arpQuestion(b, broadcast(), client, vip4), solicit(b, self, link6, vip6)
	b.Run("arp", func(b *testing.B) {
		for b.Loop() {
			a.arp(q4, out)
		}
	})
	b.Run("ndp", func(b *testing.B) {
		for b.Loop() {
			a.ndp(q6, out)
		}
	})
}
