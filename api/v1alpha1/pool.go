package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IPAddressPool is a set of addresses that Services of type LoadBalancer may
// be given.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=quayside
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Auto Assign",type=boolean,JSONPath=`.spec.autoAssign`
// +kubebuilder:printcolumn:name="Avoid Buggy IPs",type=boolean,JSONPath=`.spec.avoidBuggyIPs`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.spec.addresses`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type IPAddressPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   IPAddressPoolSpec   `json:"spec"`
	Status IPAddressPoolStatus `json:"status,omitempty"`
}

// IPAddressPoolSpec is what the operator wants of a pool.
type IPAddressPoolSpec struct {
	// Addresses are CIDR prefixes ("10.0.0.0/24") or inclusive ranges
	// ("10.0.0.10-10.0.0.20") of either family. A range begins no higher than
	// it ends, within one family; nothing overlaps, in this pool or another.
	//
	// The API server refuses what is no prefix and no range. It cannot compare
	// two addresses, so a range that runs backwards or overlaps another is
	// accepted and reported by the condition Ready.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=96
	// +kubebuilder:validation:items:XValidation:rule="self.contains('-') ? isIP(self.substring(0, self.indexOf('-')).trim()) && isIP(self.substring(self.indexOf('-') + 1).trim()) : isCIDR(self.trim())",messageExpression="'\"' + self + '\" is neither a prefix like 10.0.0.0/24 nor a range like 10.0.0.10-10.0.0.20'",message="must be a prefix like 10.0.0.0/24 or a range like 10.0.0.10-10.0.0.20"
	// +kubebuilder:validation:items:XValidation:rule="!self.contains('-') || self.substring(0, self.indexOf('-')).contains(':') == self.substring(self.indexOf('-')).contains(':')",messageExpression="'\"' + self + '\" begins in one address family and ends in the other'",message="a range must begin and end in the same address family"
	Addresses []string `json:"addresses"`

	// AutoAssign lets Services that name no pool take an address from here.
	//
	// +optional
	// +kubebuilder:default:=true
	AutoAssign *bool `json:"autoAssign,omitempty"`

	// AvoidBuggyIPs leaves out IPv4 addresses that end in .0 and .255, which
	// some old equipment drops.
	//
	// +optional
	AvoidBuggyIPs bool `json:"avoidBuggyIPs,omitempty"`

	// AllocateTo narrows the Services that may use this pool without naming it. Those
	// are given its addresses before any of a pool that says nothing here.
	//
	// +optional
	AllocateTo *ServiceAllocation `json:"serviceAllocation,omitempty"`

	// Reserved are addresses of this pool, as prefixes, ranges or single
	// addresses, that are only given to a Service that asks for them by
	// address.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=96
	// +kubebuilder:validation:items:XValidation:rule="self.contains('-') ? isIP(self.substring(0, self.indexOf('-')).trim()) && isIP(self.substring(self.indexOf('-') + 1).trim()) : isCIDR(self.trim()) || isIP(self.trim())",messageExpression="'\"' + self + '\" is neither an address, nor a prefix like 10.0.0.0/28, nor a range like 10.0.0.10-10.0.0.20'",message="must be an address, a prefix like 10.0.0.0/28 or a range like 10.0.0.10-10.0.0.20"
	// +kubebuilder:validation:items:XValidation:rule="!self.contains('-') || self.substring(0, self.indexOf('-')).contains(':') == self.substring(self.indexOf('-')).contains(':')",messageExpression="'\"' + self + '\" begins in one address family and ends in the other'",message="a range must begin and end in the same address family"
	Reserved []string `json:"reserved,omitempty"`

	// ReuseAfter is how long a freed address rests before another Service may
	// get it. Zero, the default, reuses at once, oldest freed first.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('2562047h')",message="must not be longer than 2562047h"
	ReuseAfter *metav1.Duration `json:"reuseAfter,omitempty"`

	// Drain stops new assignments from this pool; present ones stay.
	//
	// +optional
	Drain bool `json:"drain,omitempty"`
}

// ServiceAllocation says which Services a pool serves, and before which other
// pools.
type ServiceAllocation struct {
	// Priority orders pools: a lower number goes first, zero goes last. Among
	// equal ones, a pool with namespaces or selectors goes before one without;
	// then they go by name.
	//
	// +optional
	Priority int `json:"priority,omitempty"`
	// Namespaces whose Services may use the pool, in union with
	// NamespaceSelectors.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelectors pick namespaces by label; any one suffices.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	// ServiceSelectors pick Services by label; any one suffices.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
}

// IPAddressPoolStatus is written by the controller's leader.
type IPAddressPoolStatus struct {
	// AssignedIPv4 and AssignedIPv6 count addresses in use; AvailableIPv4 and
	// AvailableIPv6 those a new Service could get. They saturate at MaxInt64.
	AssignedIPv4  int64 `json:"assignedIPv4"`
	AssignedIPv6  int64 `json:"assignedIPv6"`
	AvailableIPv4 int64 `json:"availableIPv4"`
	AvailableIPv6 int64 `json:"availableIPv6"`

	// Resting are freed addresses that wait for spec.reuseAfter to pass before
	// another Service may get them, in at most 128 ranges: if there are more,
	// those that still rest longest. A new leader goes by this, and so does not
	// end their rest.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=128
	Resting []RestingAddresses `json:"resting,omitempty"`
	// RestingCount counts all addresses that rest.
	//
	// +optional
	RestingCount int64 `json:"restingCount,omitempty"`

	// Conditions say whether the pool is usable ("Ready") and whether an
	// advertisement selects it ("Advertised").
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RestingAddresses were freed at one time.
type RestingAddresses struct {
	// Addresses is one address ("10.0.0.10") or an inclusive range
	// ("10.0.0.10-10.0.0.20").
	Addresses string `json:"addresses"`
	// Since when they rest, rounded up.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`
	Since metav1.Time `json:"since"`
}

// IPAddressPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type IPAddressPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []IPAddressPool `json:"items"`
}
