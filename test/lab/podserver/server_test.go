package podserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// start serves on a free port of the loopback interface.
func start(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, Options{Pod: "web-1", Node: "node1"}, []net.Listener{l}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestReply(t *testing.T) {
	addr := start(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/a/b?status=418&size=10", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "video.example.com"
	req.Header.Set("X-Test", "1")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var r Reply
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 418 || r.Pod != "web-1" || r.Node != "node1" || r.Method != "POST" || r.Host != "video.example.com" ||
		r.Path != "/a/b?status=418&size=10" || r.Headers.Get("X-Test") != "1" || r.Body != 5 || len(r.Padding) != 10 || r.Local != addr {
		t.Errorf("status %d, reply %+v", resp.StatusCode, r)
	}
}

func TestUpgradeEchoes(t *testing.T) {
	conn, err := net.Dial("tcp", start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The first bytes come with the request, as an eager client sends them.
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "echo" {
		t.Fatalf("%s, Upgrade %q", resp.Status, resp.Header.Get("Upgrade"))
	}
	if _, err := fmt.Fprint(conn, " late"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("early late"))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "early late" {
		t.Errorf("echo %q, %v", got, err)
	}
}
