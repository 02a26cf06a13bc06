package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name the API.
const (
	Group   = "quayside.io"
	Version = "v1alpha1"
)

// GroupVersion returns quayside.io/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme registers every kind of this package with s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(),
		&IPAddressPool{}, &IPAddressPoolList{},
		&L2Advertisement{}, &L2AdvertisementList{},
		&BGPAdvertisement{}, &BGPAdvertisementList{},
		&BGPPeer{}, &BGPPeerList{},
		&BFDProfile{}, &BFDProfileList{},
		&Community{}, &CommunityList{},
		&SpeakerStatus{}, &SpeakerStatusList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
