package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

const (
	published = "https://vuln.go.dev"
	source    = "golang.org/x/vulndb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	open, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
	}
	if err != nil || open > 0 {
		os.Exit(1)
	}
}

// run returns how many entries are open.
func run(ctx context.Context) (open int, err error) {
	dir, err := os.MkdirTemp("", "vulnerabilities")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	database := published
	if unreachable := reach(ctx); unreachable != nil {
		fmt.Fprintf(os.Stderr, "%v: the database is made of %s, which takes a minute\n", unreachable, source)
		if database, err = build(ctx, dir); err != nil {
			return 0, fmt.Errorf("make the database of %s: %w", source, err)
		}
	}
	out, err := command(ctx, ".", "tool", "govulncheck", "-db", database, "-format", "json", "./...")
	if err != nil {
		return 0, err
	}
	entries, err := called(bytes.NewReader(out))
	if err != nil {
		return 0, err
	}
	if open = report(os.Stdout, entries, answers()); open == 0 {
		fmt.Println("nothing that we call is affected by an entry without an answer")
	}
	return open, nil
}

// reach says why the published database cannot be reached.
func reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, published+"/index/db.json", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	return nil
}

// build makes the database in dir and returns its URL.
func build(ctx context.Context, dir string) (url string, err error) {
	out, err := command(ctx, dir, "mod", "download", "-json", source+"@latest")
	if err != nil {
		return "", err
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	made := filepath.Join(dir, "db")
	_, err = command(ctx, dir, "run", source+"/cmd/indexdb@"+module.Version, "-vulns", filepath.Join(module.Dir, "data", "osv"), "-out", made)
	return "file://" + made, err
}

// command runs go in a directory and returns what it prints.
func command(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, failed.Stderr)
	}
	return out, err
}
