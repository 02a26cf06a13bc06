package snapshot

import "iter"

// Get returns the object of that kind and key.
func (c *Cluster) Get(kind Kind, k Key) (Object, bool) {
	switch kind {
	case Service:
		return object(c.Services, k)
	case EndpointSlice:
		return object(c.EndpointSlices, k)
	case Node:
		return object(c.Nodes, k)
	case Namespace:
		return object(c.Namespaces, k)
	case Secret:
		return object(c.Secrets, k)
	case ConfigMap:
		return object(c.ConfigMaps, k)
	case Ingress:
		return object(c.Ingresses, k)
	case IngressClass:
		return object(c.IngressClasses, k)
	case IPAddressPool:
		return object(c.IPAddressPools, k)
	case L2Advertisement:
		return object(c.L2Advertisements, k)
	case BGPAdvertisement:
		return object(c.BGPAdvertisements, k)
	case BGPPeer:
		return object(c.BGPPeers, k)
	case BFDProfile:
		return object(c.BFDProfiles, k)
	case Community:
		return object(c.Communities, k)
	case SpeakerStatus:
		return object(c.SpeakerStatuses, k)
	}
	return nil, false
}

// Objects yields every object of a kind in an unspecified but repeatable order.
func (c *Cluster) Objects(kind Kind) iter.Seq[Object] {
	switch kind {
	case Service:
		return objects(c.Services)
	case EndpointSlice:
		return objects(c.EndpointSlices)
	case Node:
		return objects(c.Nodes)
	case Namespace:
		return objects(c.Namespaces)
	case Secret:
		return objects(c.Secrets)
	case ConfigMap:
		return objects(c.ConfigMaps)
	case Ingress:
		return objects(c.Ingresses)
	case IngressClass:
		return objects(c.IngressClasses)
	case IPAddressPool:
		return objects(c.IPAddressPools)
	case L2Advertisement:
		return objects(c.L2Advertisements)
	case BGPAdvertisement:
		return objects(c.BGPAdvertisements)
	case BGPPeer:
		return objects(c.BGPPeers)
	case BFDProfile:
		return objects(c.BFDProfiles)
	case Community:
		return objects(c.Communities)
	case SpeakerStatus:
		return objects(c.SpeakerStatuses)
	}
	return func(func(Object) bool) {}
}

// Kinds yields every kind of object that a Cluster holds; Faults is none.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for k := range Faults {
			if !yield(k) {
				return
			}
		}
	}
}

func object[V Object](s Store[V], k Key) (Object, bool) {
	o, ok := s.Get(k)
	if !ok {
		return nil, false // not a V(nil) inside an Object
	}
	return o, true
}

func objects[V Object](s Store[V]) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, o := range s.All() {
			if !yield(o) {
				return
			}
		}
	}
}
