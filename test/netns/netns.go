// Package netns runs tests in network namespaces of their own.
package netns

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const marker = "QUAYSIDE_TEST_NETNS"

// Inside runs the calling test again in a process with a network of its own,
// and returns true there. In the parent it reports what the child did, and
// returns false. Goroutines change threads, so a namespace must belong to a
// whole process. The test needs root, ip, nsenter and the programs named; where
// one is missing it is skipped, and in CI it fails.
func Inside(t *testing.T, timeout time.Duration, programs ...string) bool {
	t.Helper()
	if IsInside(t) {
		return true
	}
	if lacks := Lacks(programs...); lacks != "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("needs %s", lacks)
		}
		t.Skipf("needs %s", lacks)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+timeout.String())
	cmd.Env = append(os.Environ(), marker+"="+t.Name())
	cmd.SysProcAttr = Own()
	out, err := cmd.CombinedOutput()
	t.Logf("in its own namespace:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// IsInside reports whether the calling test has a network of its own already.
func IsInside(t *testing.T) bool { return os.Getenv(marker) == t.Name() }

// Lacks names what this machine lacks for namespaces and programs; "": nothing.
func Lacks(programs ...string) string {
	if os.Geteuid() != 0 {
		return "root"
	}
	for _, p := range append(programs, "ip", "nsenter") {
		if _, err := exec.LookPath(p); err != nil {
			return p
		}
	}
	return ""
}

// Own makes a process begin with a network of its own, and end with this one.
func Own() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}

// Sh runs shell commands that must succeed, and returns what they print.
func Sh(t testing.TB, command string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// MAC is the link-layer address of an interface. prefix runs the question
// elsewhere, such as "nsenter -t 1 -n "; "": here.
func MAC(t testing.TB, prefix, link string) string {
	t.Helper()
	_, rest, _ := strings.Cut(Sh(t, prefix+"ip -o link show "+link), "link/ether ")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("%s has no MAC", link)
	}
	return fields[0]
}

// Worked is the processor time that a process has used, in steps of 10 ms.
func Worked(t testing.TB, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// utime and stime are fields 14 and 15, in hundredths; the name may hold spaces.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, errU := strconv.Atoi(fields[11])
	system, errS := strconv.Atoi(fields[12])
	if errU != nil || errS != nil {
		t.Fatalf("no times in %q", b)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Without does something on a thread that lacks a capability for as long, such as
// unix.CAP_NET_RAW. Other goroutines keep it.
func Without(t *testing.T, capability uint, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		t.Fatal(err)
	}
	less := has
	less[capability/32].Effective &^= 1 << (capability % 32)
	if err := unix.Capset(&header, &less[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&header, &has[0]); err != nil {
			t.Error(err)
		}
	}()
	do()
}
