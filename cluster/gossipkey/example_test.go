package gossipkey_test

import (
	"fmt"

	"quayside.io/cluster/gossipkey"
)

// A key file in the middle of a rotation: the first key encrypts, both decrypt.
func Example() {
	keys, err := gossipkey.Parse([]byte("a new secret of 16 bytes or more\nthe secret that is replaced\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range keys {
		fmt.Println(len(key), gossipkey.Print(key))
	}
	_, err = gossipkey.Parse([]byte("too short"))
	fmt.Println(err)
	// Output:
	// 32 1f14644b
	// 32 680097d4
	// line 1 has 9 bytes; a secret needs at least 16
}
