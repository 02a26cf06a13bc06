package l2

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mdlayher/arp"
	"golang.org/x/sys/unix"

	"quayside.io/test/netns"
)

const (
	benchEnv       = "QUAYSIDE_BENCH_RESPONDER"
	benchAddresses = 5000
	benchRate      = 20000 // questions per second
	benchSeconds   = 3
	benchP99       = time.Millisecond
)

// BenchmarkLAN asks 20,000 questions a second about 5,000 addresses over a
// cable. Whoever answers has one processor for itself and a network of its
// own; the asker has another processor. An answer has taken as long as the
// kernel says that it came after its question left. The peer is a loop over
// mdlayher/arp with a map behind a lock, which is how MetalLB answers.
func BenchmarkLAN(b *testing.B) {
	if who := os.Getenv(benchEnv); who != "" {
		answerUntilKilled(b, who)
		return
	}
	if lacks := netns.Lacks("taskset"); lacks != "" {
		b.Skipf("needs %s", lacks)
	}
	if runtime.NumCPU() < 2 {
		b.Skip("needs two processors: one asks, one answers")
	}
	for _, who := range []string{"quayside", "mdlayher-arp"} {
		b.Run(who, func(b *testing.B) {
			ifi, child := startAnswering(b, who)
			before := netns.Worked(b, child)
			for b.Loop() {
				got := ask(b, ifi)
				got.report(b)
				if who == "quayside" && (got.lost > 0 || got.at(990) > benchP99) {
					b.Errorf("%d answers lost, p99 %v; want none and %v", got.lost, got.at(990), benchP99)
				}
			}
			answered := float64(b.N * benchSeconds * benchRate)
			b.ReportMetric(0, "ns/op") // a length that was chosen
			b.ReportMetric(float64((netns.Worked(b, child)-before).Microseconds())/answered, "cpu-µs/question")
		})
	}
}

// TestAnswersAreQuick is what BenchmarkLAN promises. When others want the
// processors, too, who waits for one answers late, and loses what comes when its
// buffer has been full for a quarter of a second: such a round says nothing.
func TestAnswersAreQuick(t *testing.T) {
	if !netns.Inside(t, 2*time.Minute, "taskset") { // and without company
		return
	}
	if racing || runtime.NumCPU() < 2 {
		t.Skip("needs two processors, one to ask and one to answer, and no race detector")
	}
	ifi, child := startAnswering(t, "quayside")
	for range 5 {
		before := waited(t, child) + waited(t, os.Getpid())
		got := ask(t, ifi)
		idle := waited(t, child) + waited(t, os.Getpid()) - before
		t.Logf("of %d answers %d are lost, p50 %v, p99 %v; the processors were waited for %v", benchSeconds*benchRate, got.lost, got.at(500), got.at(990), idle)
		if got.lost == 0 && got.at(990) <= benchP99 {
			return
		}
		if idle < benchSeconds*time.Second/200 { // half of what makes one in a hundred late
			t.Fatalf("%d answers are lost and p99 is %v; want none and %v at most", got.lost, got.at(990), benchP99)
		}
	}
	t.Log("this machine has no two processors to spare")
}

// waited is for how long the threads of a process could have run and did not.
func waited(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads of %d: %v", pid, err)
	}
	for _, path := range threads {
		var ran, delayed int64
		if b, err := os.ReadFile(path); err == nil { // it may have ended
			if _, err := fmt.Sscan(string(b), &ran, &delayed); err != nil {
				t.Fatalf("%s: %q: %v", path, b, err)
			}
			sum += time.Duration(delayed)
		}
	}
	return sum
}

func benchAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 20, byte(i >> 8), byte(i)}) }

// startAnswering starts the process behind the cable; the interface is our end.
func startAnswering(b testing.TB, who string) (ifi *net.Interface, pid int) {
	cpu := strconv.Itoa(runtime.NumCPU() - 1)
	cmd := exec.Command("taskset", "-c", cpu, os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkLAN$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), benchEnv+"="+who, "GOMAXPROCS=1")
	cmd.SysProcAttr = netns.Own()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	there := strconv.Itoa(cmd.Process.Pid)
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it ends no other way
		_ = cmd.Wait()
		_ = exec.Command("ip", "link", "del", "qsbench").Run() // else it goes when the kernel gets to it, and the next round is here first
	})
	for _, line := range []string{
		"ip link add qsbench type veth peer name lan0 netns " + there,
		"ip link set qsbench up",
		"nsenter -t " + there + " -n ip addr add 10.20.255.1/16 dev lan0", // arp.Dial refuses an interface without
		"nsenter -t " + there + " -n ip link set lan0 up",
	} {
		argv := strings.Fields(line)
		if said, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v: %s", line, err, said)
		}
	}
	fmt.Fprintln(in, "the cable is plugged in")
	said := bufio.NewScanner(out)
	for said.Scan() && said.Text() != "ready" {
	}
	if err := said.Err(); err != nil {
		b.Fatal(err)
	}
	ifi, err = net.InterfaceByName("qsbench")
	if err != nil {
		b.Fatal(err)
	}
	return ifi, cmd.Process.Pid
}

// answerUntilKilled is the other process.
func answerUntilKilled(b *testing.B, who string) {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	failed := make(chan error, 1)
	switch who {
	case "quayside":
		a := New(Options{Log: slog.New(slog.DiscardHandler)})
		w := &Want{Addresses: map[netip.Addr]Announcement{}}
		for i := range benchAddresses {
			w.Addresses[benchAddress(i)] = Announcement{}
		}
		a.Set(w)
		go func() { failed <- a.Run(context.Background()) }()
		time.Sleep(8 * time.Second) // what it says by itself has been said
	default:
		go func() { failed <- answerPlainly() }()
		time.Sleep(time.Second)
	}
	fmt.Println("ready")
	b.Fatal(<-failed)
}

// answerPlainly is the peer.
func answerPlainly() error {
	ifi, err := net.InterfaceByName("lan0")
	if err != nil {
		return err
	}
	client, err := arp.Dial(ifi)
	if err != nil {
		return err
	}
	var mu sync.RWMutex
	ours := map[netip.Addr]struct{}{}
	for i := range benchAddresses {
		ours[benchAddress(i)] = struct{}{}
	}
	for {
		p, _, err := client.Read()
		if err != nil {
			return err
		}
		mu.RLock()
		_, known := ours[p.TargetIP]
		mu.RUnlock()
		if p.Operation != arp.OperationRequest || !known {
			continue
		}
		if err := client.Reply(p, ifi.HardwareAddr, p.TargetIP); err != nil {
			return err
		}
	}
}

// answers are how long each took, in order.
type answers struct {
	took []time.Duration
	lost int
}

// at is how long so many of a thousand took at most.
func (a answers) at(permille int) time.Duration {
	if len(a.took) == 0 {
		return -1
	}
	return a.took[(len(a.took)-1)*permille/1000]
}

func (a answers) report(b *testing.B) {
	b.ReportMetric(float64(a.lost), "lost")
	for unit, permille := range map[string]int{"p50-µs": 500, "p99-µs": 990, "p99.9-µs": 999} {
		b.ReportMetric(float64(a.at(permille).Microseconds()), unit)
	}
}

// ask sends paced questions and collects the answers. It stays away from the
// processor of who answers.
func ask(b testing.TB, ifi *net.Interface) answers {
	stayOn(b, 0)
	self := mac(ifi.HardwareAddr)
	filter, err := arpFilter(ifi.Index, []span{{0, ^uint32(0)}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	in, err := openSocket(ifi, protoARP, filter)
	if err != nil {
		b.Fatal(err)
	}
	out := in.writer()
	frames := make([][]byte, benchAddresses)
	for i := range frames {
		if frames[i], err = arpFrame(arp.OperationRequest, self, netip.IPv4Unspecified(), mac{}, benchAddress(i)); err != nil {
			b.Fatal(err)
		}
	}
	sent := make([]atomic.Int64, benchAddresses) // when; an address is asked for each quarter of a second
	var got answers
	var receiving sync.WaitGroup
	receiving.Go(func() { got.collect(in, sent) })
	n := benchSeconds * benchRate
	runtime.LockOSThread()
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / benchRate)
		if wait := time.Until(due); wait > 0 {
			pause := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&pause, nil) // time.Sleep counts in milliseconds
		}
		sent[i%benchAddresses].Store(time.Now().UnixNano())
		if err := out.write(frames[i%benchAddresses]); err != nil {
			b.Fatal(err)
		}
	}
	runtime.UnlockOSThread()
	time.Sleep(250 * time.Millisecond)
	in.close()
	receiving.Wait()
	got.lost = n - len(got.took)
	slices.Sort(got.took)
	return got
}

// collect reads answers until the socket is closed. The kernel notes when each
// arrived, so that the asker's own haste does not count.
func (a *answers) collect(in *socket, sent []atomic.Int64) {
	_ = in.raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	control := make([]byte, 128)
	var nControl int
	in.readFn = func(fd uintptr) bool {
		in.n, nControl, _, _, in.err = unix.Recvmsg(int(fd), in.buf, control, 0)
		return in.err != unix.EAGAIN
	}
	for {
		frame, open := in.read()
		if !open {
			return
		}
		if len(frame) < arpLen || frame[arpOp+1] != arpReply {
			continue
		}
		i := int(frame[arpSPA+2])<<8 | int(frame[arpSPA+3])
		arrived := arrival(control[:nControl])
		if i >= len(sent) || arrived == 0 {
			continue
		}
		if at := sent[i].Swap(0); at != 0 {
			a.took = append(a.took, time.Duration(arrived-at))
		}
	}
}

// arrival is the time stamp of a packet in nanoseconds; 0: none.
func arrival(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 || len(messages[0].Data) < 16 {
		return 0
	}
	seconds, ns := binary.NativeEndian.Uint64(messages[0].Data), binary.NativeEndian.Uint64(messages[0].Data[8:])
	return int64(seconds)*int64(time.Second) + int64(ns)
}

// stayOn keeps this process, all its threads and their children, on one processor.
func stayOn(b testing.TB, cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, &set) // the thread may have ended
		}
	}
}
