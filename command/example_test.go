package command_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"quayside.io/command"
)

// The whole program: main passes os.Args, and exits with what Run returns. Here it
// translates an object of MetalLB; notes about it would go to standard error.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pool.yaml")
	if err := os.WriteFile(file, []byte(`
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: all, namespace: metallb-system}
`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	code := command.Run(context.Background(), "v1.0.0", []string{"quayside", "migrate", "-f", file}, os.Stdout, io.Discard)
	fmt.Println("exit code", code)
	// Output:
	// ---
	// apiVersion: quayside.io/v1alpha1
	// kind: L2Advertisement
	// metadata:
	//   name: all
	// spec: {}
	// exit code 0
}
