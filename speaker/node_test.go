package speaker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/cluster"
	"quayside.io/test/objects"
)

// What a node of a fleet is told in its environment.
const (
	nodeEnv  = "QUAYSIDE_TEST_NODE"
	nodesEnv = "QUAYSIDE_TEST_NODES"
	keyEnv   = "QUAYSIDE_TEST_KEY"
	profEnv  = "QUAYSIDE_TEST_PROFILE"
	manyEnv  = "QUAYSIDE_TEST_MANY"
)

// TestOneNode is not a test but a node of a fleet: a process with a network of
// its own that runs a speaker. It says "ready" on its output. Lines on its
// input are what changes in the cluster: "local NODE…" are the nodes with
// endpoints of the Service of policy Local, "at N ADDRESS" is another InternalIP
// of a node, "drain on" and "drain off" are about this node, and to "spent" it says what
// it has done so far.
func TestOneNode(t *testing.T) {
	name := os.Getenv(nodeEnv)
	if name == "" {
		t.Skip("runs only as a part of a fleet")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("me", name)
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := strconv.Atoi(os.Getenv(nodesEnv))
	if err != nil {
		t.Fatal(err)
	}
	all := objects.Fleet(nodes)
	if os.Getenv(manyEnv) == "true" {
		for i := range manyServices {
			all = append(all, objects.Service(fmt.Sprintf("many%d", i), manyAddress(i)))
		}
	}
	files.Put(all...) // each Put arranges everything anew
	go func() { _ = files.Run(context.Background()) }()
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			obey(files, name, strings.Fields(in.Text()))
		}
		if err := in.Err(); err != nil {
			t.Error(err)
		}
	}()
	s, err := New(Options{Source: files.Source, Writer: files, NodeName: name, MembersKeyFile: os.Getenv(keyEnv), Profile: os.Getenv(profEnv), Processors: runtime.GOMAXPROCS(0), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for s.Ready() != nil {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("ready")
	}()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func obey(files *cluster.Files, me string, words []string) {
	switch {
	case words[0] == "spent":
		_ = json.NewEncoder(os.Stdout).Encode(spent()) // of numbers
	case words[0] == "local":
		files.Put(objects.Endpoints(words[1:]...))
	case words[0] == "at":
		number, _ := strconv.Atoi(words[1])
		n := objects.Node(number)
		n.Status.Addresses[0].Address = words[2]
		files.Put(n)
	case words[0] == "drain":
		number, _ := strconv.Atoi(me[1:])
		if words[1] == "on" {
			files.Put(objects.DrainedNode(number))
		} else {
			files.Put(objects.Node(number))
		}
	}
}
