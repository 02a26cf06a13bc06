package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BGPPeer is a router that the speakers open a BGP session with.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=quayside
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
//
// +kubebuilder:validation:XValidation:rule="(has(self.peerASN) && self.peerASN != 0) != has(self.dynamicASN)",message="set one of peerASN and dynamicASN"
// +kubebuilder:validation:XValidation:rule="(has(self.peerAddress) && self.peerAddress.size() > 0) != (has(self.interface) && self.interface.size() > 0)",message="set one of peerAddress and interface"
// +kubebuilder:validation:XValidation:rule="!has(self.interface) || self.interface.size() == 0 || ((!has(self.sourceAddress) || self.sourceAddress.size() == 0) && (!has(self.ebgpMultiHop) || !self.ebgpMultiHop))",message="an unnumbered session runs between the link-local addresses of one link: it has neither sourceAddress nor ebgpMultiHop"
// +kubebuilder:validation:XValidation:rule="!has(self.password) || self.password.size() == 0 || !has(self.passwordSecret) || !has(self.passwordSecret.name) || self.passwordSecret.name.size() == 0",message="set password or passwordSecret, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.keepaliveTime) || !has(self.holdTime) || duration(self.keepaliveTime) <= duration(self.holdTime)",message="keepaliveTime must not be longer than holdTime"
// +kubebuilder:validation:XValidation:rule="!has(self.ebgpMultiHop) || !self.ebgpMultiHop || (has(self.peerASN) && self.peerASN != 0 && self.peerASN != self.myASN) || (has(self.dynamicASN) && self.dynamicASN == 'external')",message="ebgpMultiHop is for eBGP: peerASN must differ from myASN"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecurity) || !self.ttlSecurity || !has(self.ebgpMultiHop) || !self.ebgpMultiHop",message="ttlSecurity accepts direct neighbours only: it cannot be combined with ebgpMultiHop"
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
	// Address to dial; one of peerAddress and interface is set. A link-local one
	// has a zone, such as fe80::1%eth0.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=61
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || isIP(self) || (self.matches('^[fF][eE][89aAbB][0-9a-fA-F]:[0-9a-fA-F:]*%[^%/\\\\s]{1,15}$') && isIP(self.split('%')[0]))",message="must be an IP address, if it is link-local perhaps with a zone like fe80::1%eth0"
	Address string `json:"peerAddress,omitempty"`
	// Interface for an unnumbered session with the one router at its other end:
	// both sides find each other's IPv6 link-local address by Router Advertisements,
	// and IPv4 routes have IPv6 next hops (RFC 8950).
	//
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[^/%\s]*$`
	Interface string `json:"interface,omitempty"`
	// SrcAddress is our end of the session.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || isIP(self)",message="must be an IP address"
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
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || (duration(self) >= duration('3s') && duration(self) <= duration('65535s'))",message="must be 0s or from 3s to 65535s"
	HoldTime *metav1.Duration `json:"holdTime,omitempty"`
	// KeepaliveTime defaults to a third of the hold time.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('65535s')",message="must not be longer than 65535s"
	KeepaliveTime *metav1.Duration `json:"keepaliveTime,omitempty"`
	// ConnectTime is the wait between attempts, 1 s to 65535 s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('65535s') && duration(self).getMilliseconds() % 1000 == 0",message="must be whole seconds from 1s to 65535s"
	ConnectTime *metav1.Duration `json:"connectTime,omitempty"`
	// RouterID in the form of an IPv4 address.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || (isIP(self) && ip(self).family() == 4)",message="must have the form of an IPv4 address"
	RouterID string `json:"routerID,omitempty"`
	// NodeSelectors pick the nodes that open the session; none means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	// Password for TCP MD5 (RFC 2385); passwordSecret is safer.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Password string `json:"password,omitempty"`
	// PasswordSecret names a Secret of type kubernetes.io/basic-auth in
	// Quayside's own namespace; its key "password" is used.
	//
	// +optional
	PasswordSecret corev1.SecretReference `json:"passwordSecret,omitempty,omitzero"`
	// BFDProfile by name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
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
	// +kubebuilder:validation:MaxLength=127
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
// +kubebuilder:resource:scope=Cluster,categories=quayside
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
	// ReceiveInterval is the shortest interval at which we can receive; 300 ms if unset.
	//
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	ReceiveInterval *uint32 `json:"receiveInterval,omitempty"`
	// TransmitInterval is the shortest interval at which we want to send; 300 ms if unset.
	//
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	TransmitInterval *uint32 `json:"transmitInterval,omitempty"`
	// DetectMultiplier is how many packets may be lost before the session is
	// down; 3 if unset.
	//
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=255
	DetectMultiplier *uint32 `json:"detectMultiplier,omitempty"`
	// EchoInterval is the interval of echo packets; 50 ms if unset.
	//
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=60000
	EchoInterval *uint32 `json:"echoInterval,omitempty"`
	// EchoMode asks for echo packets, between direct neighbours only.
	//
	// +optional
	EchoMode *bool `json:"echoMode,omitempty"`
	// PassiveMode waits for the peer to send first.
	//
	// +optional
	PassiveMode *bool `json:"passiveMode,omitempty"`
	// MinimumTTL is the lowest TTL accepted in a packet of a multihop session;
	// 254 if unset.
	//
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
// +kubebuilder:resource:scope=Cluster,categories=quayside
type Community struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CommunitySpec `json:"spec,omitempty"`
}

// CommunitySpec is the list of aliases.
type CommunitySpec struct {
	// Communities and their names; a name occurs once.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Communities []CommunityAlias `json:"communities,omitempty"`
}

// CommunityAlias names one community.
type CommunityAlias struct {
	// Name that a BGPAdvertisement may use in its communities.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Value as "a:b" (RFC 1997) or "large:a:b:c" (RFC 8092).
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="(self.matches('^[0-9]{1,5}:[0-9]{1,5}$') && self.split(':').all(n, int(n) <= 65535)) || (self.matches('^large:[0-9]{1,10}:[0-9]{1,10}:[0-9]{1,10}$') && self.substring(6).split(':').all(n, int(n) <= 4294967295))",messageExpression="'\"' + self + '\" is no community: write 65000:100 or large:65000:1:2'",message="must be a community like 65000:100 or large:65000:1:2"
	Value string `json:"value"`
}

// CommunityList is a list of communities.
//
// +kubebuilder:object:root=true
type CommunityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Community `json:"items"`
}
