package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpeakerStatus is what the speaker of one node says about itself. It has the
// name of the node, and only that speaker writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=quayside
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Announcing",type=integer,JSONPath=`.status.announcingCount`
// +kubebuilder:printcolumn:name="Alive",type=integer,JSONPath=`.status.members.alive`
// +kubebuilder:printcolumn:name="Leaving",type=boolean,JSONPath=`.status.leaving`
type SpeakerStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status SpeakerStatusStatus `json:"status,omitempty"`
}

// SpeakerStatusStatus is the content of a SpeakerStatus. Only the list that
// grows with the cluster is bounded: an error message too long by one letter
// must not cost the whole report. Times are held to the one spelling that
// every reader takes: a list with one object that does not decode is not read
// at all, and each speaker writes one of them.
type SpeakerStatusStatus struct {
	// Announcing are the addresses this node answers for on layer 2, at most 1,000
	// of them. What it tells routers is counted in BGPSessions: every node may
	// announce every address there, and a list of all on each would be too long.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Announcing []Announcing `json:"announcing,omitempty"`
	// AnnouncingCount counts all of them.
	//
	// +optional
	AnnouncingCount int64 `json:"announcingCount,omitempty"`
	// BGPSessions of this node.
	//
	// +optional
	BGPSessions []BGPSession `json:"bgpSessions,omitempty"`
	// Interfaces that can carry announcements.
	//
	// +optional
	Interfaces []SpeakerInterface `json:"interfaces,omitempty"`
	// Node is what other speakers read of this node's Node. Where there are many of
	// them, they read it here and do not watch Nodes, which kubelets write every few
	// minutes.
	//
	// +optional
	Node *SpeakerNode `json:"node,omitempty"`
	// Members as this speaker sees them. Three speakers, the first that live in order of
	// their names, say it for all.
	//
	// +optional
	Members SpeakerMembers `json:"members,omitempty"`
	// Unheard are addresses, at most 100, that other nodes announce on a LAN of this one
	// and that are not answered for there, though the node's own address is: the network
	// drops what nodes say for them.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Unheard []UnheardAddress `json:"unheard,omitempty"`
	// GossipKey is the ed25519 public key (RFC 8032) in base64 with which this speaker
	// signs what it tells the others. It is another one after each start of its pod;
	// without it, they believe what is not signed.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{43}=$`
	GossipKey string `json:"gossipKey,omitempty"`
	// GossipSecrets are words for the secrets that this speaker shares with the others,
	// at most eight, the one that it writes with first: fingerprints, of which nobody
	// learns a secret. The controller changes the secret when all have the new one.
	//
	// +optional
	GossipSecrets []string `json:"gossipSecrets,omitempty"`
	// Leaving says that this node hands its addresses over: its speaker stops,
	// or the node is being drained.
	//
	// +optional
	Leaving bool `json:"leaving,omitempty"`
}

// SpeakerNode is the part of a Node by which the speakers of other nodes place
// addresses.
type SpeakerNode struct {
	// UID of the Node; empty: there is no such Node.
	//
	// +optional
	UID string `json:"uid,omitempty"`
	// Labels of the Node.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=1000
	Labels map[string]string `json:"labels,omitempty"`
	// Addresses of the Node.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Addresses []SpeakerNodeAddress `json:"addresses,omitempty"`
	// NotReady says that the Node's condition Ready is not True.
	//
	// +optional
	NotReady bool `json:"notReady,omitempty"`
	// NetworkUnavailable is the Node's condition of that name.
	//
	// +optional
	NetworkUnavailable bool `json:"networkUnavailable,omitempty"`
}

// SpeakerNodeAddress is one address of a Node.
type SpeakerNodeAddress struct {
	// Type as in the Node, such as InternalIP.
	Type string `json:"type"`
	// Address as in the Node.
	Address string `json:"address"`
}

// Announcing is one address of one Service.
type Announcing struct {
	// Service as namespace/name.
	Service string `json:"service"`
	// Address announced.
	Address string `json:"address"`
	// Protocol is "l2".
	Protocol string `json:"protocol"`
	// Epoch of the claim on an L2 address; a higher one wins.
	//
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// Preference is a fingerprint of the preferredNodeSelectors under which this
	// node holds an L2 address. Where those change, a node that they prefer may
	// take the address.
	//
	// +optional
	Preference string `json:"preference,omitempty"`
	// Interfaces that answer for an L2 address.
	//
	// +optional
	Interfaces []string `json:"interfaces,omitempty"`
	// Peers that a BGP address is sent to, by name of BGPPeer.
	//
	// +optional
	Peers []string `json:"peers,omitempty"`
}

// UnheardAddress is an address that another node announces and this one does not hear.
type UnheardAddress struct {
	// Address announced.
	Address string `json:"address"`
	// Node that announces it.
	Node string `json:"node"`
	// Interface of this node on the LAN.
	Interface string `json:"interface"`
}

// BGPSession is the state of one session.
type BGPSession struct {
	// Peer by name of BGPPeer.
	Peer string `json:"peer"`
	// Address of the peer; that of an unnumbered one was found by its Router
	// Advertisements.
	//
	// +optional
	Address string `json:"address,omitempty"`
	// State of the finite state machine of RFC 4271 8.2.2.
	State string `json:"state"`
	// Since when it is in this state.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`
	Since *metav1.Time `json:"since,omitempty"`
	// Advertised counts prefixes sent.
	//
	// +optional
	Advertised int64 `json:"advertised,omitempty"`
	// Hash of the prefixes sent and their attributes, in hexadecimal: the same on
	// two nodes that tell their peers the same.
	//
	// +optional
	Hash string `json:"hash,omitempty"`
	// LastError that ended or kept down the session, in words. It stays when the
	// session is up again.
	//
	// +optional
	LastError string `json:"lastError,omitempty"`
	// Withheld says how many prefixes this peer cannot be told, and why.
	//
	// +optional
	Withheld string `json:"withheld,omitempty"`
	// BFDState of RFC 5880 6.2 of the BFD session that guards this one: Up, Init,
	// Down or AdminDown; empty if there is none.
	//
	// +optional
	BFDState string `json:"bfdState,omitempty"`
	// BFDReason says why BFDState is not Up.
	//
	// +optional
	BFDReason string `json:"bfdReason,omitempty"`
}

// SpeakerInterface is one interface of the node.
type SpeakerInterface struct {
	// Name as the kernel spells it.
	Name string `json:"name"`
	// MAC that answers name for our addresses.
	//
	// +optional
	MAC string `json:"mac,omitempty"`
	// Prefixes on the link: Addresses and Routes. Speakers of older releases list
	// nothing else.
	//
	// +optional
	Prefixes []string `json:"prefixes,omitempty"`
	// Addresses are the interface's own, with the lengths of their networks.
	//
	// +optional
	Addresses []string `json:"addresses,omitempty"`
	// Routes are destinations on the link in which the interface has no address.
	//
	// +optional
	Routes []string `json:"routes,omitempty"`
	// Gateways are next hops on the link.
	//
	// +optional
	Gateways []string `json:"gateways,omitempty"`
	// Up says that the interface has a carrier and is not shut.
	//
	// +optional
	Up bool `json:"up,omitempty"`
}

// SpeakerMembers counts the members of the gossip cluster.
type SpeakerMembers struct {
	// Alive counts the speakers that answer, this one included. Who does not speak
	// for all counts itself, and leaves out how many are expected.
	//
	// +optional
	Alive int32 `json:"alive,omitempty"`
	// Expected counts the nodes that should have a speaker.
	//
	// +optional
	Expected int32 `json:"expected,omitempty"`
	// NotAlive are the nodes that should be there and are not, with the reason.
	//
	// +optional
	NotAlive []string `json:"notAlive,omitempty"`
}

// SpeakerStatusList is a list of SpeakerStatuses.
//
// +kubebuilder:object:root=true
type SpeakerStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpeakerStatus `json:"items"`
}
