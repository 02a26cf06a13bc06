package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// loaded is what wrk or h2load has to say.
type loaded struct {
	requests int
	p50, p99 time.Duration // 0: not known
	errors   string
}

// load sends the requests of a set by wrk.
func (s *optionSet) load(ctx context.Context, addr string, w work, d time.Duration) (loaded, error) {
	args := []string{"-c", loadCore, "wrk", "--latency", "--timeout", "30s", "-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", max(1, int(d.Seconds())))}
	for _, field := range s.fields {
		args = append(args, "-H", field)
	}
	if w.close {
		args = append(args, "-H", "Connection: close")
	}
	scheme, path := "http://", "/"
	if w.tls {
		scheme = "https://"
	}
	if s.name != "" {
		path = askedPath
	}
	cmd := exec.CommandContext(ctx, "taskset", append(args, scheme+addr+path)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return loaded{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	var l loaded
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[1] == "requests" && fields[2] == "in":
			fmt.Sscan(fields[0], &l.requests)
		case len(fields) == 2 && fields[0] == "50%":
			l.p50, err = time.ParseDuration(fields[1])
		case len(fields) == 2 && fields[0] == "99%":
			l.p99, err = time.ParseDuration(fields[1])
		case strings.Contains(line, "Non-2xx") || strings.Contains(line, "Socket errors"):
			l.errors += strings.TrimSpace(line) + " "
		}
		if err != nil {
			return loaded{}, fmt.Errorf("wrk: %q: %w", line, err)
		}
	}
	return l, nil
}

// loadHTTP2 is load by h2load, which knows no percentiles.
func loadHTTP2(ctx context.Context, addr string, d time.Duration) (loaded, error) {
	return h2load(ctx, d, "-m100", "https://"+addr+"/")
}

func h2load(ctx context.Context, d time.Duration, args ...string) (loaded, error) {
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", loadCore, "h2load", "-t1", "-c16", fmt.Sprintf("-D%d", max(1, int(d.Seconds())))}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return loaded{}, fmt.Errorf("h2load: %w: %s", err, out)
	}
	var l loaded
	for line := range strings.Lines(string(out)) {
		var ok, failed, errored, late int
		if strings.HasPrefix(line, "requests: ") {
			_, rest, _ := strings.Cut(line, " done, ")
			fmt.Sscanf(rest, "%d succeeded, %d failed, %d errored, %d timeout", &ok, &failed, &errored, &late)
			if l.requests = ok; failed+errored+late > 0 {
				l.errors = strings.TrimSpace(line)
			}
		}
	}
	return l, nil
}
