package assign

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/lbpool"
)

// A consumer is a Service that may have addresses, in our own words. What stands
// above the line is read from the object once; the rest is one Compile's decision
// about it.
type consumer struct {
	svc     *corev1.Service
	created int64 // unix seconds
	holder  lbpool.Holder

	have     []netip.Addr       // in status, each once
	places   map[netip.Addr]int // in have, where that is long
	alien    string             // an entry of status that is no address of ours for sure: a hostname
	asks     *request           // nil: for nothing by name
	stack    [2]lbpool.Family   // wanted, primary first…
	stacks   uint8              // …and how many
	requires bool               // both families or none
	given    bool               // the annotation says that we gave what is in status
	dying    bool               // being deleted
	lists    bool               // addresses in spec.externalIPs
	managed  bool               // a load balancer, and ours
	changed  bool               // see loadbalancer.HasNewTerms

	// homes are the pools of have in poolIndex; nil: in none.
	homes     []*pool
	poolIndex *lbpool.PoolIndex
	// settled says that the object is as it should be if it keeps exactly what
	// it has, and nothing is refused.
	settled bool

	foreign bool // managed, but another controller's address: left alone
	leaving bool // what it has goes with the next plan; this one warns
	round   uint64
	holds   []netip.Addr   // the decision: what belongs in status
	room    [1]netip.Addr  // for the one that most hold
	trouble *trouble       // nil: none
	listed  *lbpool.Holder // itself, on what it lists in spec.externalIPs
}

// Trouble is what a Service would have otherwise. It belongs to one plan, and is
// apart because few have any.
type trouble struct {
	lost    []loss // what is taken away
	refused denial // why it does not have what it asks for
}

// A request is what a Service asks for by name.
type request struct {
	pool  string
	wants []netip.Addr
	fault denial // it cannot be read
}

// A denial is a reason from the list in names.go and a sentence.
type denial struct{ reason, message string }

func (r denial) isZero() bool { return r.reason == "" }

// A loss is an address taken away, and why, as the end of a sentence.
type loss struct {
	addr netip.Addr
	why  string
}

// read makes an empty consumer that of a Service.
func (c *consumer) read(svc *corev1.Service) {
	c.svc, c.created, c.holder = svc, svc.CreationTimestamp.Unix(), loadbalancer.HolderOf(svc)
	c.holds = c.room[:0]
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if a, ok := loadbalancer.ParseAddress(in.IP); ok {
			c.addHave(a)
		} else {
			c.alien = in.IP + in.Hostname
		}
	}
	_, c.given = svc.Annotations[loadbalancer.AnnotationGiven]
	c.changed = loadbalancer.HasNewTerms(svc)
	c.dying, c.lists = svc.DeletionTimestamp != nil, len(loadbalancer.ExternalIPs(svc)) > 0
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		c.readFamilies()
		c.readRequest()
	}
}

// addHave enters an address in status, if it is not there yet.
func (c *consumer) addHave(a netip.Addr) {
	if c.find(a) >= 0 {
		return
	}
	c.have = append(c.have, a)
	switch n := len(c.have); {
	case c.places != nil:
		c.places[a] = n - 1
	case n > maxRequested: // more than we give: somebody else wrote them
		c.places = make(map[netip.Addr]int, 2*n)
		for i, a := range c.have {
			c.places[a] = i
		}
	}
}

// find returns the index of an address in have, or -1.
func (c *consumer) find(a netip.Addr) int {
	if c.places == nil {
		return slices.Index(c.have, a)
	}
	if i, ok := c.places[a]; ok {
		return i
	}
	return -1
}

// families returns the families that a Service wants, primary first.
func (c *consumer) families() []lbpool.Family { return c.stack[:c.stacks] }

// readFamilies finds out what they are. An API server fills ipFamilies in; from
// files it may have to be guessed.
func (c *consumer) readFamilies() {
	spec, policy := &c.svc.Spec, corev1.IPFamilyPolicySingleStack
	if spec.IPFamilyPolicy != nil {
		policy = *spec.IPFamilyPolicy
	}
	c.requires = policy == corev1.IPFamilyPolicyRequireDualStack
	for _, f := range spec.IPFamilies {
		if f == corev1.IPv6Protocol {
			c.add(lbpool.IPv6)
		} else {
			c.add(lbpool.IPv4)
		}
	}
	if c.stacks == 0 {
		if spec.ClusterIP != "" {
			c.addFamilyOf(spec.ClusterIP)
		}
		for _, ip := range spec.ClusterIPs {
			c.addFamilyOf(ip)
		}
	}
	guessed := c.stacks == 0
	if guessed {
		c.add(lbpool.IPv4)
	}
	switch {
	case policy == corev1.IPFamilyPolicySingleStack:
		c.stacks = 1
	case c.requires || guessed:
		c.add(lbpool.IPv4)
		c.add(lbpool.IPv6)
	}
}

// add adds a family that is not yet among those wanted.
func (c *consumer) add(f lbpool.Family) {
	if !slices.Contains(c.families(), f) {
		c.stack[c.stacks] = f
		c.stacks++
	}
}

// addFamilyOf adds the family of an address, if it is one.
func (c *consumer) addFamilyOf(ip string) {
	if a, ok := loadbalancer.ParseAddress(ip); ok {
		c.add(lbpool.FamilyOf(a))
	}
}

// readRequest reads what a Service asks for by name.
func (c *consumer) readRequest() {
	pool, _ := loadbalancer.Annotation(c.svc, loadbalancer.AnnotationPool)
	wants, fault := requestOf(c.svc)
	for _, a := range wants {
		if fault.isZero() && !slices.Contains(c.families(), lbpool.FamilyOf(a)) {
			fault = denial{ReasonFamilyMismatch, fmt.Sprintf(
				"it asks for %v, but the Service has no %v; change spec.ipFamilies or the request", a, lbpool.FamilyOf(a))}
		}
	}
	if pool != "" || len(wants) > 0 || !fault.isZero() {
		c.asks = &request{pool, wants, fault}
	}
}

// request returns what a Service asks for by name.
func (c *consumer) request() request {
	if c.asks == nil {
		return request{}
	}
	return *c.asks
}

// requestOf reads the addresses that a Service asks for.
func requestOf(svc *corev1.Service) ([]netip.Addr, denial) {
	list, _ := loadbalancer.Annotation(svc, loadbalancer.AnnotationAddresses)
	wants, fault := parseRequest("the annotation loadBalancerIPs", list)
	field, fieldFault := parseRequest("spec.loadBalancerIP", svc.Spec.LoadBalancerIP)
	switch {
	case !fault.isZero():
		return nil, fault
	case !fieldFault.isZero():
		return nil, fieldFault
	case len(wants) == 0:
		return field, denial{}
	case len(field) > 0 && !slices.Contains(wants, field[0]):
		return nil, denial{ReasonConflictingRequest, fmt.Sprintf(
			"spec.loadBalancerIP asks for %v and the annotation loadBalancerIPs for %s; remove one", field[0], join(wants))}
	}
	return wants, denial{}
}

// maxRequested bounds how many addresses one Service may ask for. MetalLB gives one of
// each family. Here they are placed on different nodes, so that the proxy's Service has
// the network cards of several: enough of both families for that and for one answer of
// DNS in 512 bytes, and few enough that a quota of Services (services.loadbalancers) is
// still one of addresses, more or less.
const maxRequested = 16

func parseRequest(where, list string) (wants []netip.Addr, fault denial) {
	if strings.TrimSpace(list) == "" {
		return nil, denial{}
	}
	for s := range strings.SplitSeq(list, ",") {
		a, err := lbpool.ParseAddr(s)
		if err != nil {
			return nil, denial{ReasonBadRequest, where + ": " + err.Error()}
		}
		switch {
		case slices.Contains(wants, a):
		case len(wants) == maxRequested:
			return nil, denial{ReasonBadRequest, fmt.Sprintf(
				"%s asks for more than %d addresses; divide them among several Services", where, maxRequested)}
		default:
			wants = append(wants, a)
		}
	}
	return wants, denial{}
}

// isOutside reports whether an address in status is in none of our pools.
func (c *consumer) isOutside() bool { return slices.Contains(c.homes, nil) }

// isContent reports whether a Service of ours keeps exactly what it has.
func (c *consumer) isContent() bool {
	return c.managed && !c.foreign && c.trouble.denial().isZero() && len(c.holds) > 0 && slices.Equal(c.holds, c.have)
}

// lose says that a Service loses an address, and why.
func (c *consumer) lose(a netip.Addr, why string) {
	if c.trouble == nil {
		c.trouble = &trouble{}
	}
	c.trouble.lost = append(c.trouble.lost, loss{a, why})
}

// refuse says why a Service does not have what it asks for; a zero denial takes
// that back.
func (c *consumer) refuse(r denial) {
	switch {
	case c.trouble != nil:
		c.trouble.refused = r
	case !r.isZero():
		c.trouble = &trouble{refused: r}
	}
}

func (t *trouble) losses() []loss {
	if t == nil {
		return nil
	}
	return t.lost
}

func (t *trouble) denial() denial {
	if t == nil {
		return denial{}
	}
	return t.refused
}

// begin forgets the decision of an earlier Compile.
func (c *consumer) begin(round uint64, ps *pools) {
	if c.poolIndex != ps.poolIndex {
		c.poolIndex, c.homes, c.settled = ps.poolIndex, c.homes[:0], false
		for _, a := range c.have {
			c.homes = append(c.homes, ps.poolOf(a))
		}
	}
	c.round, c.foreign, c.leaving = round, false, false
	c.holds, c.trouble, c.listed = c.holds[:0], nil, nil
}
