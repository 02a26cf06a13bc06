package migrate_test

import (
	"fmt"
	"os"

	"quayside.io/command/migrate"
)

func Example() {
	var m migrate.Migration
	err := m.Read("pool.yaml", []byte(`
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: lan, namespace: metallb-system}
spec:
  addresses: [192.168.1.240-192.168.1.250]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Result().WriteYAML(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # there is no L2Advertisement and no BGPAdvertisement: MetalLB announces nothing then, but Quayside every pool by ARP and NDP on every interface; an L2Advertisement confines that
	// ---
	// apiVersion: quayside.io/v1alpha1
	// kind: IPAddressPool
	// metadata:
	//   name: lan
	// spec:
	//   addresses:
	//   - 192.168.1.240-192.168.1.250
}
