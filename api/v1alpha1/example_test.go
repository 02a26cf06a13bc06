package v1alpha1_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
)

// What kubectl applies is what the types read.
func Example() {
	var pool v1alpha1.IPAddressPool
	err := yaml.UnmarshalStrict([]byte(`
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec:
  addresses: [192.168.1.240-192.168.1.250]
  autoAssign: false
`), &pool)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pool.Name, pool.Spec.Addresses, *pool.Spec.AutoAssign)
	// Output:
	// lan [192.168.1.240-192.168.1.250] false
}
