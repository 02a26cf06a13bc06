package members

import "testing"

// However large the cluster, the peers that are absent are sought by a few.
func TestAFewSeek(t *testing.T) {
	for _, alive := range []int{1, 2, seekers} {
		for range 100 {
			if !seeks(alive) {
				t.Fatalf("with %d alive one does not seek", alive)
			}
		}
	}
	const alive, rounds = 1000, 100
	n := 0
	for range alive * rounds {
		if seeks(alive) {
			n++
		}
	}
	if each := float64(n) / rounds; each < seekers/2 || each > 2*seekers {
		t.Errorf("of %d members %.1f seek in a round, want %d", alive, each, seekers)
	}
}
