package migrate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/lbpool"
)

// sharer is a Service that shares the addresses that it has, or asks for, under a key.
type sharer struct {
	lbpool.Holder
	addresses []netip.Addr
}

// noteSharer remembers a Service of type LoadBalancer that shares.
func (m *Migration) noteSharer(svc *corev1.Service) {
	holder := loadbalancer.HolderOf(svc)
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || holder.Sharing == nil {
		return
	}
	asked, _ := loadbalancer.Annotation(svc, loadbalancer.AnnotationAddresses)
	texts := []string{svc.Spec.LoadBalancerIP}
	for text := range strings.SplitSeq(asked, ",") {
		texts = append(texts, strings.TrimSpace(text))
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		texts = append(texts, in.IP)
	}
	m.sharers = append(m.sharers, sharer{holder, loadbalancer.ParseAddresses(texts)})
}

// unadmitted says which Services share an address with one of another namespace and do not permit
// that: with MetalLB the key is enough.
func (m *Migration) unadmitted() (notes []string) {
	byAddress := map[netip.Addr][]*sharer{}
	for i := range m.sharers {
		for _, a := range m.sharers[i].addresses {
			byAddress[a] = append(byAddress[a], &m.sharers[i])
		}
	}
	for a, all := range byAddress {
		names := []string{}
		for _, s := range all {
			if slices.ContainsFunc(all, func(o *sharer) bool { return s.Clash(&o.Holder) == "" && s.Unadmitted(&o.Holder) }) {
				names = append(names, s.Holder.String())
			}
		}
		if slices.Sort(names); len(names) > 0 {
			notes = append(notes, fmt.Sprintf("Services %s share %v under one key from several namespaces: they keep it, but none joins it anew unless each permits the others' namespaces "+
				"by the annotation %s, which is a list or \"*\"", strings.Join(names, ", "), a, loadbalancer.AnnotationSharingNamespaces))
		}
	}
	slices.Sort(notes)
	return notes
}
