package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/test/lab/sandbox"
)

// Capture writes down what passes the LAN's switch.
type Capture struct {
	view    *Cluster
	process *Process
	before  int // bytes that earlier captures wrote to the same log
}

// Capture begins to capture packets that match a tcpdump filter, "arp" for
// instance, and returns once it sees them.
func (v *Cluster) Capture(filter string) *Capture {
	v.helper()
	if _, err := exec.LookPath("tcpdump"); err != nil {
		v.lacks(fmt.Errorf("lab: run `make packages` as root: %w", err))
	}
	c := &Capture{view: v}
	if st, err := os.Stat(filepath.Join(v.Logs(), "capture.log")); err == nil {
		c.before = int(st.Size())
	}
	var err error
	c.process, err = v.run.start("capture", &sandbox.Spec{
		NetNS: v.lan.ns.path,
		// Promiscuous on the bridge itself: each forwarded packet is seen once. Its
		// head is enough, and 8 MiB keep a starved tcpdump from missing one.
		Argv: []string{"tcpdump", "-i", "br0", "-n", "-e", "-tt", "-l", "--immediate-mode", "-s", "256", "-B", "8192", "-Z", "root", filter},
	})
	v.must(err)
	v.onEnd(c.process.Kill)
	v.must(eventually(5*time.Second, func() error {
		if strings.Contains(c.text(), "listening on") {
			return nil
		}
		if c.process.Ended() {
			return &permanent{errors.New("lab: tcpdump: " + tail(c.text(), 2))}
		}
		return errors.New("lab: tcpdump is not listening yet")
	}))
	return c
}

func (c *Capture) text() string {
	text := c.process.Log()
	return text[min(c.before, len(text)):]
}

// Stop ends the capture and returns one line per packet, as `tcpdump -e -tt`
// writes it.
func (c *Capture) Stop() []string {
	c.process.Signal(unix.SIGINT)
	<-c.process.Done()
	var packets []string
	for line := range strings.Lines(c.text()) {
		if len(line) > 0 && line[0] >= '0' && line[0] <= '9' && strings.Contains(line, " > ") {
			packets = append(packets, strings.TrimSpace(line))
		}
	}
	return packets
}
