package lab

import (
	"fmt"
	"net/netip"
)

// The address plan of doc.go. Node and client numbers begin with 1.

const (
	lanBits4, lanBits6 = 24, 64
	lanCIDR4           = "10.77.0.0/24"
	lanCIDR6           = "fd77::/64"
	podCIDR4           = "10.244.0.0/16"
	podCIDR6           = "fd44::/48"
	serviceCIDR4       = "10.96.0.0/16"
	serviceCIDR6       = "fd96::/108"
	kubernetesIP4      = "10.96.0.1" // the API server's Service
	kubernetesIP6      = "fd96::1"
	firstNode          = 10
	firstClient        = 100
	lastClient         = 149
	gatewayHost        = 1
	apiHost            = 2
)

// families are those of the addresses of a cluster and of its LAN.
type families struct{ v4, v6 bool }

// each returns those of two that the cluster has, in its order.
func (f families) each(four, six string) (list []string) {
	if f.v4 {
		list = append(list, four)
	}
	if f.v6 {
		list = append(list, six)
	}
	return list
}

// first returns the one of two that is of the cluster's first family.
func (f families) first(four, six string) string { return f.each(four, six)[0] }

// onLAN is the first address of host n.
func (f families) onLAN(n int) string { return f.first(lanAddr4(n), lanAddr6(n)) }

// lanAddr4 is the LAN address of host n, without its length.
func lanAddr4(n int) string { return theLAN.addr4(n) }

func lanAddr6(n int) string { return theLAN.addr6(n) }

// lanMAC is readable in a capture: its last byte is the host's number.
func lanMAC(n int) string { return theLAN.mac(n) }

// subnet is the number of a LAN in its addresses.
type subnet int

const (
	theLAN    subnet = 77
	secondLAN subnet = 79
)

func (s subnet) addr4(host int) string { return fmt.Sprintf("10.%d.0.%d", s, host) }

func (s subnet) addr6(host int) string { return fmt.Sprintf("fd%d::%d", s, host) }

func (s subnet) mac(host int) string { return fmt.Sprintf("02:%d:00:00:00:%02x", s, host) }

func nodePods4(node int) string { return fmt.Sprintf("10.244.%d.0/24", node) }

func nodePods6(node int) string { return fmt.Sprintf("fd44:0:0:%d::/64", node) }

func podAddr4(node, pod int) string { return fmt.Sprintf("10.244.%d.%d", node, pod) }

func podAddr6(node, pod int) string { return fmt.Sprintf("fd44:0:0:%d::%d", node, pod) }

// podGateway4 is on the node's side of every veth; only the pod asks for it.
func podGateway4(node int) string { return fmt.Sprintf("10.244.%d.1", node) }

const podGateway6 = "fe80::1"

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }
