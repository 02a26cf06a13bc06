package main

import (
	"slices"
	"strings"
	"testing"
)

func TestFailures(t *testing.T) {
	const output = `=== RUN   TestMoves
    moves_test.go:101: --- FAIL: TestNone (1s)
--- PASS: TestMoves (1.00s)
--- FAIL: TestDrain (2.00s)
    --- FAIL: TestDrain/three_nodes (2.00s)
        moves_test.go:114: cut
--- SKIP: TestDNS (0.00s)
--- FAIL: TestRollout (3.00s)
FAIL
FAIL	quayside.io/test/e2e	6.000s
FAIL`
	failed, err := failures(strings.NewReader(output))
	if err != nil || !slices.Equal(failed, []string{"TestDrain", "TestRollout"}) {
		t.Errorf("%v, %v", failed, err)
	}
}
