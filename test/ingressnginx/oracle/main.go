//go:build oracle

// This file is the main program of a copy of ingress-nginx when the lab builds it; see
// test/lab/ingressnginx.go. Questions are read from standard input, one JSON object each: objects
// of Kubernetes. Answered when nginx serves them as ingress-nginx would have it, which it does
// until the next question. What is written stands in the working directory.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"k8s.io/ingress-nginx/internal/ingress/controller"
	"k8s.io/ingress-nginx/internal/nginx"
)

// question is what is asked.
type question struct {
	Objects  []json.RawMessage
	Flags    controller.OracleFlags
	Ports    [5]int   // see NewOracle
	Template string   // of nginx.conf
	Lua      []string // folders of modules, searched in this order
	Modules  []string // of nginx, as files to load
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	end := func() {}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		err := in.Decode(&asked)
		end()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			log.Fatal(err)
		}
		var answer struct{ Error string }
		if end, err = asked.serve(); err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
}

// serve has nginx serve the objects until end is called, which is never nil.
func (q *question) serve() (end func(), err error) {
	end = func() {}
	objects := make([]runtime.Object, len(q.Objects))
	for i, o := range q.Objects {
		if objects[i], _, err = scheme.Codecs.UniversalDeserializer().Decode(o, nil, nil); err != nil {
			return end, fmt.Errorf("%s: %w", o, err)
		}
	}
	folder, err := os.Getwd()
	if err != nil {
		return end, err
	}
	for _, dir := range []string{"ingress-controller/ssl", "ingress-controller/auth", "nginx"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return end, err
		}
	}
	nginx.TemplatePath, nginx.PID = q.Template, filepath.Join(folder, "nginx.pid")
	o, err := controller.NewOracle(fake.NewClientset(objects...), q.Flags, q.Ports)
	if err != nil {
		return end, err
	}
	defer o.Close()
	conf, err := o.Conf()
	if err != nil {
		return end, err
	}
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(q.fit(string(conf), folder)), 0o600); err != nil {
		return end, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := exec.CommandContext(ctx, "nginx", "-p", folder, "-c", file)
	served.Cancel = func() error { return served.Process.Signal(syscall.SIGTERM) } // its workers, too
	var said bytes.Buffer
	served.Stderr = &said
	if err := served.Start(); err != nil {
		cancel()
		return end, err
	}
	ended := make(chan struct{})
	go func() {
		_ = served.Wait() // what it said tells more
		close(ended)
	}()
	stop := func() {
		cancel()
		<-ended
	}
	if err = o.Configure(ended); err == nil && q.Flags.Passthrough {
		err = q.handOn(ctx, o)
	}
	if err != nil {
		stop()
		return end, fmt.Errorf("%w\n%s\n%s", err, served.ProcessState, said.String())
	}
	return stop, nil
}

// handOn serves HTTPS before nginx, as its controller does, until ctx ends.
func (q *question) handOn(ctx context.Context, o *controller.Oracle) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", q.Ports[1]))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go o.Handle(c)
		}
	}()
	return nil
}

// fit is a configuration that loads modules and Lua from where they are here, keeps its files in
// folder, and asks for nothing that Debian's nginx does not have.
func (q *question) fit(conf, folder string) string {
	var fitted strings.Builder
	fitted.WriteString("user root;\n") // whose files these are
	for _, m := range q.Modules {
		fmt.Fprintf(&fitted, "load_module %s;\n", m)
	}
	conf, _, _ = strings.Cut(conf, "\nstream {") // TCP and UDP
	for _, change := range [][2]string{
		{"/etc/nginx/lua/?.lua", strings.Join(q.Lua, "/?.lua;") + "/?.lua"},
		{"/tmp/nginx", filepath.Join(folder, "nginx")},
		{"/var/log/nginx", filepath.Join(folder, "nginx")},
		{" ingress-controller/", " " + filepath.Join(folder, "ingress-controller") + "/"},
		{"set_escape_uri $escaped_request_uri $request_uri;", "set_by_lua_block $escaped_request_uri { return ngx.escape_uri(ngx.var.request_uri) }"},
	} {
		conf = strings.ReplaceAll(conf, change[0], change[1])
	}
	fitted.WriteString(offerHTTP2(conf))
	return fitted.String()
}

// offerHTTP2 says that HTTP/2 is offered as nginx before 1.25.1 reads it: where it listens.
func offerHTTP2(conf string) string {
	offered := strings.ReplaceAll(conf, "http2 on;", "")
	if offered == conf {
		return conf
	}
	return securely.ReplaceAllString(offered, "$0 http2")
}

// securely is a line by which nginx listens for TLS, without its end.
var securely = regexp.MustCompile(`(?m)^\s*listen\s[^;]* ssl\b`)
