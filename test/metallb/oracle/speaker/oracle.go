//go:build oracle

// What becomes of the addresses of a cluster, by the speakers; see main.go beside this folder.
package main

import (
	"net"
	"slices"

	kitlog "github.com/go-kit/log"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"go.universe.tf/metallb/internal/bgp"
	"go.universe.tf/metallb/internal/config"
	"go.universe.tf/metallb/internal/speakerlist"
	"k8s.io/apimachinery/pkg/util/sets"
)

type cluster struct {
	config.ClusterResources
	Services []*v1.Service
	Slices   [][]discovery.EndpointSlice // by Service
}

type answer struct {
	Error string // what is wrong with the configuration
	Nodes map[string]*node
}

// node is what a node would do if its speaker were the only one for layer 2.
type node struct {
	Layer2 map[string]layer2Answer  // by Service
	BGP    map[string][]bgpAnnounce // by peer with a session
}

type layer2Answer struct {
	Interfaces []string // none: all
	Weight     int64
}

type bgpAnnounce struct {
	Prefix      string
	LocalPref   uint32
	Prepend     int
	Communities []string
}

// answer asks a speaker on each node.
func (asked *cluster) answer() answer {
	cfg, err := config.For(asked.ClusterResources, config.DontValidate, config.ForOptions{})
	if err != nil {
		return answer{Error: err.Error()}
	}
	all := answer{Nodes: map[string]*node{}}
	for i := range asked.Nodes {
		all.Nodes[asked.Nodes[i].Name] = asked.on(asked.Nodes[i].Name, cfg)
	}
	return all
}

func (asked *cluster) on(me string, cfg *config.Config) *node {
	on := &node{Layer2: map[string]layer2Answer{}, BGP: map[string][]bgpAnnounce{}}
	quiet := kitlog.NewNopLogger()
	routers := &bgpController{
		logger: quiet, myNode: me, svcAds: map[string][]*bgp.Advertisement{}, activeAds: map[string]sets.Set[string]{},
		adsChangedCallback: func(string) {}, bgpType: bgpNative, sessionManager: sessions{on.BGP},
	}
	lan := &layer2Controller{myNode: me, sList: only(me)}
	c := &controller{
		myNode: me, nodes: map[string]*v1.Node{}, client: silent{}, protocols: []config.Proto{config.BGP, config.Layer2},
		protocolHandlers: map[config.Proto]Protocol{config.BGP: routers, config.Layer2: recorded{lan, on.Layer2}},
		announced:        map[config.Proto]map[string]bool{config.BGP: {}, config.Layer2: {}}, svcIPs: map[string][]net.IP{},
	}
	c.SetConfig(quiet, cfg)
	for i := range asked.Nodes {
		c.SetNode(quiet, &asked.Nodes[i])
	}
	for i, svc := range asked.Services {
		c.SetBalancer(quiet, svc.Namespace+"/"+svc.Name, svc, asked.Slices[i])
	}
	return on
}

// recorded is the handler of layer 2 with an announcer that writes down what it is to answer.
type recorded struct {
	*layer2Controller
	answers map[string]layer2Answer
}

func (r recorded) SetBalancer(_ kitlog.Logger, name string, ips []net.IP, pool *config.Pool, _ service, svc *v1.Service) error {
	all := l2AdsForService(pool.L2Advertisements, svc)
	var said layer2Answer
	for _, ad := range l2AdsForNode(all, r.myNode) {
		if ad.AllInterfaces {
			said.Interfaces = nil
			break
		}
		said.Interfaces = append(said.Interfaces, ad.Interfaces...)
	}
	slices.Sort(said.Interfaces)
	said.Interfaces = slices.Compact(said.Interfaces)
	said.Weight = preferredScoresFor(all)[r.myNode]
	r.answers[name] = said
	return nil
}

func (recorded) DeleteBalancer(kitlog.Logger, string, string) error { return nil }

// only is a list of speakers with one node.
type only string

func (o only) UsableSpeakers() speakerlist.SpeakerListInfo {
	return speakerlist.SpeakerListInfo{Nodes: map[string]bool{string(o): true}}
}
func (only) Rejoin() {}

// sessions write down what routers are told.
type sessions struct{ told map[string][]bgpAnnounce }

func (s sessions) NewSession(_ kitlog.Logger, p bgp.SessionParameters) (bgp.Session, error) {
	s.told[p.SessionName] = []bgpAnnounce{}
	return session{s.told, p}, nil
}
func (sessions) SyncBFDProfiles(map[string]*config.BFDProfile) error { return nil }
func (sessions) SyncExtraInfo(string) error                          { return nil }
func (sessions) SetEventCallback(func(interface{}))                  {}

type session struct {
	told map[string][]bgpAnnounce
	bgp.SessionParameters
}

func (s session) Close() error {
	delete(s.told, s.SessionName)
	return nil
}

func (s session) Set(ads ...*bgp.Advertisement) error {
	list := []bgpAnnounce{}
	for _, ad := range ads {
		one := bgpAnnounce{Prefix: ad.Prefix.String(), LocalPref: ad.LocalPref, Prepend: int(ad.AsPathPrepend)}
		for _, c := range ad.Communities {
			one.Communities = append(one.Communities, c.String())
		}
		list = append(list, one)
	}
	s.told[s.SessionName] = list
	return nil
}

// silent writes nothing.
type silent struct{}

func (silent) UpdateStatus(*v1.Service) error                     { return nil }
func (silent) Infof(*v1.Service, string, string, ...interface{})  {}
func (silent) Errorf(*v1.Service, string, string, ...interface{}) {}
