package privatefile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"quayside.io/cluster/privatefile"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "key")
	if err := privatefile.Write(path, []byte("secret")); err != nil {
		fmt.Println(err)
		return
	}
	content, err := privatefile.Read(path, 1024)
	fmt.Printf("%s %v\n", content, err)

	_ = os.Chmod(path, 0o644) // others may read it: it is refused
	_, err = privatefile.Read(path, 1024)
	fmt.Println(err != nil)
	// Output:
	// secret <nil>
	// true
}
