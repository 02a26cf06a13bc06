package lab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// askDaemon runs a command in a daemon of FRR and returns what it prints. This is the
// protocol of vtysh: a command ends with a zero byte, its output with three and its
// status, of which zero is success.
func askDaemon(socket, command string) (out string, err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	for _, line := range []string{"enable", command} {
		if _, err := conn.Write(append([]byte(line), 0)); err != nil {
			return "", err
		}
		if out, err = readAnswer(in); err != nil {
			return out, err
		}
	}
	return out, nil
}

// readAnswer reads what a daemon prints for one command.
func readAnswer(in *bufio.Reader) (out string, err error) {
	if out, err = in.ReadString(0); err != nil {
		return out, err
	}
	out = strings.TrimSuffix(out, "\x00")
	var end [3]byte // two more zeros, and the status
	if _, err := io.ReadFull(in, end[:]); err != nil {
		return out, err
	}
	if end != [3]byte{} {
		return out, fmt.Errorf("status %d", end[2])
	}
	return out, nil
}
