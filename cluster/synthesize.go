package cluster

import (
	"net"
	"net/netip"
	"os"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// synthesize makes what a cluster always has and files may lack: a node, the
// namespaces, and Quayside's IngressClass.
func (f *Files) synthesize(s *fileStore) []snapshot.Object {
	var made []snapshot.Object
	if !s.given(snapshot.Node) {
		made = append(made, machine(f.opts.NodeName))
	}
	for _, name := range s.namespaceNames() { // in order, for they get their ages in it
		if !s.isGiven(id{snapshot.Namespace, snapshot.Key{Name: name}}) {
			made = append(made, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
		}
	}
	if !s.isGiven(id{snapshot.IngressClass, snapshot.Key{Name: f.opts.IngressClass}}) {
		class := &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: f.opts.IngressClass},
			Spec:       networkingv1.IngressClassSpec{Controller: ingressclass.Controller},
		}
		if !s.given(snapshot.IngressClass) {
			class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		}
		made = append(made, class)
	}
	return made
}

// machine describes this machine as the only node of its cluster.
func machine(name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Here"}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
		},
	}
	for _, ip := range ownAddresses() {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	return node
}

// ownAddresses are the machine's addresses on its networks, or the loopback
// address if it has none.
func ownAddresses() []netip.Addr {
	var all []netip.Addr
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		addrs = nil // the machine still has its loopback
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			all = append(all, prefix.Addr())
		}
	}
	if len(all) == 0 {
		all = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return all
}

// HostName is what this machine calls itself.
func HostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}
