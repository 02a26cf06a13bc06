// Package v1beta1 stands in for the types of frr-k8s that MetalLB compiles against: no
// proxy of Go modules serves the version that MetalLB 0.16.2 requires. MetalLB fills them
// with METALLB_BGP_TYPE=frr-k8s only, which the lab does not run: they have the fields that
// are named in MetalLB's code, and nothing serves them.
package v1beta1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme makes the kind known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(schema.GroupVersion{Group: "frrk8s.metallb.io", Version: "v1beta1"}, &FRRConfiguration{})
	return nil
}

// FRRConfiguration is what MetalLB asks of the FRR on a node.
type FRRConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec FRRConfigurationSpec `json:"spec"`
}

// DeepCopyObject makes it an object of the API.
func (c *FRRConfiguration) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopy returns a copy that shares nothing.
func (c *FRRConfiguration) DeepCopy() *FRRConfiguration {
	other := &FRRConfiguration{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy()}
	c.Spec.DeepCopyInto(&other.Spec)
	return other
}

type FRRConfigurationSpec struct {
	BGP          BGPConfig
	NodeSelector metav1.LabelSelector
}

// DeepCopyInto copies everything: it is made of plain values.
func (s *FRRConfigurationSpec) DeepCopyInto(other *FRRConfigurationSpec) {
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, other)
	}
	if err != nil {
		panic(err)
	}
}

type BGPConfig struct {
	Routers     []Router
	BFDProfiles []BFDProfile
}

type Router struct {
	ASN       uint32
	ID, VRF   string
	Neighbors []Neighbor
	Prefixes  []string
}

type Neighbor struct {
	Address, Interface, Password, BFDProfile                               string
	ASN                                                                    uint32
	DynamicASN                                                             DynamicASNMode
	Port                                                                   *uint16
	HoldTime, KeepaliveTime, ConnectTime                                   *metav1.Duration
	EnableGracefulRestart, EBGPMultiHop, DualStackAddressFamily, DisableMP bool
	ToAdvertise                                                            Advertise
	PasswordSecret                                                         SecretReference
}

type DynamicASNMode string

type SecretReference struct{ Name, Namespace string }

type Advertise struct {
	Allowed                   AllowedOutPrefixes
	PrefixesWithLocalPref     []LocalPrefPrefixes
	PrefixesWithCommunity     []CommunityPrefixes
	PrefixesWithAsPathPrepend []AsPathPrependPrefixes
}

type AllowedOutPrefixes struct{ Prefixes []string }

type LocalPrefPrefixes struct {
	LocalPref uint32
	Prefixes  []string
}

type CommunityPrefixes struct {
	Community string
	Prefixes  []string
}

type AsPathPrependPrefixes struct {
	AsPathPrepend uint8
	Prefixes      []string
}

type BFDProfile struct {
	Name                                                                          string
	ReceiveInterval, TransmitInterval, DetectMultiplier, EchoInterval, MinimumTTL *uint32
	EchoMode, PassiveMode                                                         *bool
}
