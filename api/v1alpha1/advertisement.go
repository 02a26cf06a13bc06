package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// L2Advertisement says which addresses are answered for by ARP and NDP, by
// which nodes and on which interfaces. Several advertisements of one pool add up.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=quayside
// +kubebuilder:printcolumn:name="IPAddressPools",type=string,JSONPath=`.spec.ipAddressPools`
// +kubebuilder:printcolumn:name="Interfaces",type=string,JSONPath=`.spec.interfaces`
type L2Advertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec L2AdvertisementSpec `json:"spec,omitempty"`
}

// L2AdvertisementSpec is what the operator wants announced on the LAN.
type L2AdvertisementSpec struct {
	// IPAddressPools by name, in union with the selectors; neither means all pools.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	IPAddressPools []string `json:"ipAddressPools,omitempty"`
	// IPAddressPoolSelectors pick pools by label; any one suffices.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors,omitempty"`
	// NodeSelectors pick the nodes that may own the addresses; none means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	// Interfaces by exact name; none means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=127
	Interfaces []string `json:"interfaces,omitempty"`
	// ServiceSelectors pick Services by label; any one suffices, none means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
	// PreferredNodeSelectors weigh the nodes that this advertisement selects: weights of
	// matching terms add up, also those of several advertisements. They choose the node
	// for an address that nobody holds, and again when they are changed; a preferred node
	// that returns takes nothing back, since moving an address cuts its connections.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	PreferredNodeSelectors []PreferredNode `json:"preferredNodeSelectors,omitempty"`
}

// PreferredNode is a preference for where an address lives.
type PreferredNode struct {
	// Weight of this term, 1 to 100.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// Preference picks the nodes that get the weight.
	Preference metav1.LabelSelector `json:"preference"`
}

// L2AdvertisementList is a list of advertisements.
//
// +kubebuilder:object:root=true
type L2AdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []L2Advertisement `json:"items"`
}

// BGPAdvertisement says which addresses are announced to BGP peers and with
// which attributes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=quayside
// +kubebuilder:printcolumn:name="IPAddressPools",type=string,JSONPath=`.spec.ipAddressPools`
// +kubebuilder:printcolumn:name="Peers",type=string,JSONPath=`.spec.peers`
type BGPAdvertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BGPAdvertisementSpec `json:"spec,omitempty"`
}

// BGPAdvertisementSpec is what the operator wants announced to routers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceSelectors) || self.serviceSelectors.size() == 0 || ((!has(self.aggregationLength) || self.aggregationLength == 32) && (!has(self.aggregationLengthV6) || self.aggregationLengthV6 == 128))",message="serviceSelectors cannot be combined with an aggregation: an aggregate also covers the addresses of Services that were not selected"
type BGPAdvertisementSpec struct {
	// AggregationLength is the IPv4 prefix length announced, no shorter than
	// the pool's own prefix.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default:=32
	AggregationLength *int32 `json:"aggregationLength,omitempty"`
	// AggregationLengthV6 is the same for IPv6.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	// +kubebuilder:default:=128
	AggregationLengthV6 *int32 `json:"aggregationLengthV6,omitempty"`
	// LocalPref is sent to iBGP peers (RFC 4271 5.1.5).
	//
	// +optional
	// +kubebuilder:validation:Format=int64
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	LocalPref uint32 `json:"localPref,omitempty"`
	// ASPathPrepend is how many more times our AS number stands in the path that
	// eBGP peers see, which makes them prefer others (RFC 4271 9.1.2.2).
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	ASPathPrepend int32 `json:"asPathPrepend,omitempty"`
	// Communities as "a:b" (RFC 1997), "large:a:b:c" (RFC 8092) or the name of
	// an alias of a Community object; at most 63.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=63
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="!self.contains(':') || (self.matches('^[0-9]{1,5}:[0-9]{1,5}$') && self.split(':').all(n, int(n) <= 65535)) || (self.matches('^large:[0-9]{1,10}:[0-9]{1,10}:[0-9]{1,10}$') && self.substring(6).split(':').all(n, int(n) <= 4294967295))",messageExpression="'\"' + self + '\" is no community: write 65000:100, large:65000:1:2 or the name of an alias'",message="must be a community like 65000:100 or large:65000:1:2, or the name of an alias"
	Communities []string `json:"communities,omitempty"`
	// IPAddressPools by name, in union with the selectors; neither means all pools.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	IPAddressPools []string `json:"ipAddressPools,omitempty"`
	// IPAddressPoolSelectors pick pools by label; any one suffices.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors,omitempty"`
	// NodeSelectors pick the nodes that announce; none means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	// Peers by name of BGPPeer; none means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Peers []string `json:"peers,omitempty"`
	// ServiceSelectors pick Services by label; not together with an aggregation.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
}

// BGPAdvertisementList is a list of advertisements.
//
// +kubebuilder:object:root=true
type BGPAdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPAdvertisement `json:"items"`
}
