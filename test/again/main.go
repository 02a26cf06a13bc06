// Command again runs go test, and where tests failed on a machine that had no time left, each
// of them once more, alone: packets that are lost since nobody had a processor to take them
// prove nothing about what lost them. On a machine that had time a failure is one at once, and
// whatever is run again is named. Its arguments are those of go test, the package last.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"quayside.io/test/busy"
)

const (
	// spare is the share of the processors' time that a machine has left that is not busy.
	spare = 0.25
	// most is how many tests fail beside others at most: more than that are no accident.
	most = 10
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	before := busy.Now()
	failed, err := goTest(args, out)
	idle := busy.Now().Idle(before)
	if err == nil || len(failed) == 0 || len(failed) > most || idle > spare {
		return err
	}
	fmt.Fprintf(out, "again: the machine had %.0f %% of its time left, so each of these is run again, alone: %s\n", 100*idle, strings.Join(failed, " "))
	for _, name := range failed {
		if _, err := goTest(append([]string{"-run", "^" + name + "$"}, args...), out); err != nil {
			return fmt.Errorf("again: %s fails alone, too: %w", name, err)
		}
	}
	fmt.Fprintf(out, "again: alone they pass: %s\n", strings.Join(failed, " "))
	return nil
}

// goTest runs go test with its output on out, and returns which tests failed.
func goTest(args []string, out io.Writer) (failed []string, err error) {
	cmd := exec.Command("go", append([]string{"test"}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	failed, err = failures(io.TeeReader(pipe, out))
	if ended := cmd.Wait(); ended != nil {
		err = ended
	}
	return failed, err
}

// failures reads what go test writes to its end, and returns the tests that failed, without
// their subtests.
func failures(r io.Reader) (failed []string, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if rest, is := strings.CutPrefix(line, "--- FAIL: "); is {
			name, _, _ := strings.Cut(rest, " ")
			failed = append(failed, name)
		}
		switch {
		case err == io.EOF:
			return failed, nil
		case err != nil:
			return failed, err
		}
	}
}
