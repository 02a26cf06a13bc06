package bfd

import (
	"fmt"
	"syscall"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"quayside.io/speaker/bfd/session"
)

// Where a filter of a UDP socket finds things: it begins at the UDP header, and
// reaches the IP header by SKF_NET_OFF of filter.h.
const (
	udpLength   = 4
	udpHeader   = 8
	netHeader   = 0xfff00000
	ttlOfIPv4   = netHeader + 8
	hopsOfIPv6  = netHeader + 7
	versionBits = 0xe0
	versionOne  = 0x20
)

// filter makes the kernel drop what no session would hear, before it takes the
// place of a packet in the queue: whoever floods us from afar then costs nobody a
// session.
func filter(c syscall.RawConn, ipv6 bool, lowest uint8) error {
	program, err := filterProgram(ipv6, lowest)
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	code := make([]unix.SockFilter, len(program))
	for i, in := range program {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	attach := func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
	}
	if failed := c.Control(attach); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("attach a filter: %w", err)
	}
	return nil
}

func filterProgram(ipv6 bool, lowest uint8) ([]bpf.RawInstruction, error) {
	ttl := uint32(ttlOfIPv4)
	if ipv6 {
		ttl = hopsOfIPv6
	}
	return bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: ttl, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(lowest), SkipTrue: 6},
		bpf.LoadAbsolute{Off: udpLength, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: udpHeader + session.PacketLength, SkipTrue: 4},
		bpf.LoadAbsolute{Off: udpHeader, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: versionBits},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: versionOne, SkipTrue: 1},
		bpf.RetConstant{Val: 0xffff},
		bpf.RetConstant{Val: 0},
	})
}
