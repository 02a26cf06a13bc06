package spool_test

import (
	"errors"
	"fmt"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/spool"
)

// All files together stay within Size. What one held is free when it is closed.
func Example() {
	s, err := spool.New(spool.Options{Size: 64 << 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := s.Create()
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := body.Write(make([]byte, 60<<10)); err != nil {
		fmt.Println(err)
	}
	_, err = body.Write(make([]byte, 60<<10))
	fmt.Println("no room:", errors.Is(err, exchange.ErrNoRoom))
	body.Close()

	if body, err = s.Create(); err != nil {
		fmt.Println(err)
		return
	}
	defer body.Close()
	_, err = body.Write([]byte("item=1&n=2"))
	fmt.Println(err)
	read := make([]byte, 6) // each try of the request reads from the start
	n, err := body.ReadAt(read, 0)
	fmt.Printf("%s %v\n", read[:n], err)
	// Output:
	// no room: true
	// <nil>
	// item=1 <nil>
}
