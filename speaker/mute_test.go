package speaker

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/test/netns"
	"quayside.io/test/objects"
)

// notes keeps the Events.
type notes struct {
	cluster.Writer
	heard []string
}

func (n *notes) Event(about snapshot.Ref, _, reason, message string) {
	n.heard = append(n.heard, about.String()+" "+reason+": "+message)
}

// lone is the speaker of node n1 among the objects of a fleet, which meets nobody.
func lone(t *testing.T, more ...snapshot.Object) (*Speaker, *notes) {
	t.Helper()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine"})
	if err != nil {
		t.Fatal(err)
	}
	files.Put(append(objects.Fleet(2), more...)...)
	go func() { _ = files.Run(t.Context()) }()
	changes := files.Watch(snapshot.Service)
	defer changes.Stop()
	for files.Snapshot().Services.Len() == 0 { // they are put together
		<-changes.C()
	}
	n := &notes{Writer: files}
	s, err := New(Options{Source: files.Source, Writer: n, NodeName: "n1", Solitary: true})
	if err != nil {
		t.Fatal(err)
	}
	<-files.Synced()
	return s, n
}

// A speaker that may not open packet sockets says so wherever it can, and does
// not meet the others, who would leave it its share of the addresses.
func TestWhoMayNotSpeakLeavesItsShare(t *testing.T) {
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine"})
	if err != nil {
		t.Fatal(err)
	}
	files.Put(objects.Fleet(2)...)
	go func() { _ = files.Run(t.Context()) }()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a secret for the fleet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &notes{Writer: files}
	s, err := New(Options{Source: files.Source, Writer: n, NodeName: "n1", MembersKeyFile: key, MembersBind: "127.0.0.1:17946"})
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		if status, ok := files.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "n1"}); ok {
			return fmt.Sprint(status.Status.Members.NotAlive)
		}
		return ""
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go func() {
		for said() == "" && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	netns.Without(t, unix.CAP_NET_RAW, func() { err = s.Run(ctx) })
	if err != nil {
		t.Error(err)
	}
	if waiting := s.members.View().Waiting; waiting != "speaker is starting" {
		t.Errorf("it has met others: %q", waiting)
	}
	told := map[string]string{"readiness": fmt.Sprint(s.Ready()), "SpeakerStatus": said(), "Events": fmt.Sprint(n.heard)}
	for where, text := range told {
		if !strings.Contains(text, "NET_RAW") {
			t.Errorf("%s says %q", where, text)
		}
	}
	if want := "Node n1 SpeakerWaiting: this node announces nothing on its LANs: "; len(n.heard) != 1 || !strings.HasPrefix(n.heard[0], want) {
		t.Errorf("told %q, want one %q", n.heard, want)
	}
}

// A speaker that may not open packet sockets still opens its sessions, and is as
// ready as one that may: what it cannot do is told, and keeps nothing else back.
func TestWhoMayNotSpeakOnTheLANSpeaksToRouters(t *testing.T) {
	router, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	peer := &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: "router"}}
	peer.Spec.MyASN, peer.Spec.ASN = 64512, 64513
	peer.Spec.Address, peer.Spec.Port = "127.0.0.1", int32(router.Addr().(*net.TCPAddr).Port)
	s, n := lone(t, peer)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	opened := make(chan error, 1)
	go func() {
		defer stop()
		if err := router.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			opened <- err
			return
		}
		conn, err := router.Accept()
		if err != nil {
			opened <- err
			return
		}
		defer conn.Close()
		header := make([]byte, 19)
		if _, err := io.ReadFull(conn, header); err != nil || header[18] != 1 {
			opened <- fmt.Errorf("no OPEN but %x, %w", header, err)
			return
		}
		for s.Ready() != nil && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		opened <- s.Ready()
	}()
	netns.Without(t, unix.CAP_NET_RAW, func() { err = s.Run(ctx) })
	if err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if told := fmt.Sprint(n.heard); !strings.Contains(told, "NET_RAW") {
		t.Errorf("nobody is told that layer 2 does not work: %s", told)
	}
}
