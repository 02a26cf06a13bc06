package members

import (
	"context"
	"log"
	"log/slog"
	"net"
	"strings"
	"time"
)

// logger passes memberlist's log lines to Options.Log. Most of its errors are deaths of
// other nodes, which are reported elsewhere, so they are logged at a lower level.
func (m *Members) logger() *log.Logger {
	return log.New(&adapter{m: m, last: map[string]time.Time{}}, "", 0)
}

// adapter is called under the logger's lock.
type adapter struct {
	m    *Members
	last map[string]time.Time // when a packet with an unknown key was last logged, by host
}

// Write takes one line such as "[WARN] memberlist: …".
func (a *adapter) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	level, rest, _ := strings.Cut(text, " memberlist: ")
	if strings.Contains(rest, "Decrypt packet failed") {
		a.wrongKey(rest)
		return len(line), nil
	}
	a.m.noteLogged(rest)
	to := slog.LevelDebug
	if level == "[WARN]" || level == "[ERR]" {
		to = slog.LevelInfo
	}
	a.m.opts.Log.Log(context.Background(), to, "memberlist: "+rest) // memberlist gives no context
	return len(line), nil
}

// wrongKey turns a line about a packet that no key decrypts into one that names the node.
func (a *adapter) wrongKey(line string) {
	_, from, _ := strings.Cut(line, "from=")
	host, _, err := net.SplitHostPort(strings.Fields(from + " ")[0])
	if err != nil || time.Since(a.last[host]) < 10*time.Second {
		return
	}
	if len(a.last) >= maxUnknown {
		clear(a.last) // the addresses may be forged
	}
	a.last[host] = time.Now()
	for _, p := range a.m.want.Load().Peers {
		if p.Addr.String() == host {
			why := "it uses another members key: a packet from " + host + " could not be decrypted; give all speakers the same key file"
			a.m.opts.Log.Warn("member refused", "node", p.Name, "reason", why)
			a.m.update(func() { a.m.missing[p.Name] = why })
			return
		}
	}
	a.m.opts.Log.Warn("packet refused: its key is unknown", "from", host)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(strings.TrimLeft(lines[len(lines)-1], "* \t"))
}
