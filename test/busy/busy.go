// Package busy keeps every processor of the machine busy, as on a node that is
// starved of CPU. Tests use it to see what goes wrong then.
package busy

import (
	"os/exec"
	"runtime"
	"sync"
	"testing"
)

// Cores keeps every processor busy with two processes until the test ends or
// release is called, which may happen more than once.
//
// The processes ask themselves whether the test still lives, so that one that is
// killed leaves none behind: they would distort whatever is measured next. Pdeathsig would tie them to a thread of ours instead.
func Cores(t testing.TB) (release func()) {
	t.Helper()
	var burners []*exec.Cmd
	release = sync.OnceFunc(func() {
		for _, b := range burners {
			_ = b.Process.Kill()
			_ = b.Wait()
		}
	})
	t.Cleanup(release)
	for range 2 * runtime.NumCPU() {
		burner := exec.Command("sh", "-c", `while kill -0 "$PPID"; do :; done`)
		if err := burner.Start(); err != nil {
			t.Fatal(err)
		}
		burners = append(burners, burner)
	}
	return release
}
