//go:build linux && !portable

package socket_test

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/socket"
)

// What would have to wait says so, though the sockets are ones that wait.
func Example() {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	near, far := uintptr(pair[0]), uintptr(pair[1])
	var room [16]byte
	_, err = socket.Receive(far, room[:])
	fmt.Println(err == syscall.EAGAIN)
	socket.Send(near, []byte("hello"), 0)
	n, err := socket.Receive(far, room[:])
	fmt.Printf("%s %v\n", room[:n], err)
	// Output:
	// true
	// hello <nil>
}
