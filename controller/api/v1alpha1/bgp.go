package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPPeer is a router that the speakers open a BGP session with.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.peerAddress`
// +kubebuilder:printcolumn:name="ASN",type=string,JSONPath=`.spec.peerASN`
// +kubebuilder:printcolumn:name="BFD Profile",type=string,JSONPath=`.spec.bfdProfile`
// +kubebuilder:printcolumn:name="Multi Hops",type=boolean,JSONPath=`.spec.ebgpMultiHop`
type BGPPeer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BGPPeerSpec `json:"spec"`
}

// BGPPeerSpec is how a session is opened.
type BGPPeerSpec struct {
	// MyASN is our autonomous system number.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	MyASN int64 `json:"myASN"`
	// ASN of the peer; one of peerASN and dynamicASN is set.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	ASN int64 `json:"peerASN,omitempty"`
	// DynamicASN accepts any peer of the given kind.
	//
	// +optional
	// +kubebuilder:validation:Enum=internal;external
	DynamicASN string `json:"dynamicASN,omitempty"`
	// LocalASN replaces myASN towards this peer.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	LocalASN int64 `json:"localASN,omitempty"`
	// Address to dial; one of peerAddress and interface is set.
	//
	// +optional
	Address string `json:"peerAddress,omitempty"`
	// Interface for an unnumbered session over IPv6 link-local addresses.
	//
	// +optional
	Interface string `json:"interface,omitempty"`
	// SrcAddress is our end of the session.
	//
	// +optional
	SrcAddress string `json:"sourceAddress,omitempty"`
	// Port to dial.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default:=179
	Port int32 `json:"peerPort,omitempty"`
	// HoldTime is zero or at least 3 s (RFC 4271 4.2).
	//
	// +optional
	HoldTime *metav1.Duration `json:"holdTime,omitempty"`
	// KeepaliveTime defaults to a third of the hold time.
	//
	// +optional
	KeepaliveTime *metav1.Duration `json:"keepaliveTime,omitempty"`
	// ConnectTime is the wait between attempts, 1 s to 65535 s.
	//
	// +optional
	ConnectTime *metav1.Duration `json:"connectTime,omitempty"`
	// RouterID in the form of an IPv4 address.
	//
	// +optional
	RouterID string `json:"routerID,omitempty"`
	// NodeSelectors pick the nodes that open the session; none means all.
	//
	// +optional
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	// Password for TCP MD5 (RFC 2385); rather use passwordSecret.
	//
	// +optional
	Password string `json:"password,omitempty"`
	// PasswordSecret names a Secret of type kubernetes.io/basic-auth in
	// Quayside's own namespace; its key "password" is used.
	//
	// +optional
	PasswordSecret corev1.SecretReference `json:"passwordSecret,omitempty"`
	// BFDProfile by name.
	//
	// +optional
	BFDProfile string `json:"bfdProfile,omitempty"`
	// EnableGracefulRestart (RFC 4724).
	//
	// +optional
	EnableGracefulRestart bool `json:"enableGracefulRestart,omitempty"`
	// EBGPMultiHop lets an eBGP peer be more than one hop away.
	//
	// +optional
	EBGPMultiHop bool `json:"ebgpMultiHop,omitempty"`
	// VRFName is the Linux VRF the session runs in.
	//
	// +optional
	VRFName string `json:"vrf,omitempty"`
	// DisableMP is deprecated and has no effect.
	//
	// +optional
	DisableMP bool `json:"disableMP,omitempty"`
	// DualStackAddressFamily announces both families on one session.
	//
	// +optional
	DualStackAddressFamily bool `json:"dualStackAddressFamily,omitempty"`
	// PassiveMode waits for the peer to dial.
	//
	// +optional
	PassiveMode bool `json:"passiveMode,omitempty"`
	// TTLSecurity accepts packets of direct neighbours only (RFC 5082).
	//
	// +optional
	TTLSecurity bool `json:"ttlSecurity,omitempty"`
}

// BGPPeerList is a list of peers.
//
// +kubebuilder:object:root=true
type BGPPeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPPeer `json:"items"`
}

// BFDProfile is a set of timings for BFD (RFC 5880). Intervals are in
// milliseconds.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Passive Mode",type=boolean,JSONPath=`.spec.passiveMode`
// +kubebuilder:printcolumn:name="Transmit Interval",type=integer,JSONPath=`.spec.transmitInterval`
// +kubebuilder:printcolumn:name="Receive Interval",type=integer,JSONPath=`.spec.receiveInterval`
// +kubebuilder:printcolumn:name="Multiplier",type=integer,JSONPath=`.spec.detectMultiplier`
type BFDProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BFDProfileSpec `json:"spec,omitempty"`
}

// BFDProfileSpec holds the timings.
type BFDProfileSpec struct {
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	ReceiveInterval *uint32 `json:"receiveInterval,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	TransmitInterval *uint32 `json:"transmitInterval,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=255
	DetectMultiplier *uint32 `json:"detectMultiplier,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	EchoInterval *uint32 `json:"echoInterval,omitempty"`
	// +optional
	EchoMode *bool `json:"echoMode,omitempty"`
	// +optional
	PassiveMode *bool `json:"passiveMode,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	MinimumTTL *uint32 `json:"minimumTtl,omitempty"`
}

// BFDProfileList is a list of profiles.
//
// +kubebuilder:object:root=true
type BFDProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BFDProfile `json:"items"`
}

// Community gives names to BGP communities.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type Community struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CommunitySpec `json:"spec,omitempty"`
}

// CommunitySpec is the list of aliases.
type CommunitySpec struct {
	// +optional
	Communities []CommunityAlias `json:"communities,omitempty"`
}

// CommunityAlias names one community.
type CommunityAlias struct {
	// +optional
	Name string `json:"name,omitempty"`
	// Value as "a:b" (RFC 1997) or "large:a:b:c" (RFC 8092).
	//
	// +optional
	Value string `json:"value,omitempty"`
}

// CommunityList is a list of communities.
//
// +kubebuilder:object:root=true
type CommunityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Community `json:"items"`
}
