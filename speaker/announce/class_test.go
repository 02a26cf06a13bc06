package announce

import (
	"testing"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// A speaker announces the Services that the controller serves by the same flags, and what
// it has given by others until it takes that back: an address that another load balancer
// gave is announced by that, even if a pool of ours contains it.
func TestSpeakersChooseAsTheControllerDoes(t *testing.T) {
	ours, own, theirs := loadbalancer.Class, "example.com/ours", "example.com/theirs"
	byDefault, only, renamed := loadbalancer.Choice{}, loadbalancer.Choice{OnlyWith: true}, loadbalancer.Choice{Class: own}
	for _, c := range []struct {
		name      string
		choice    loadbalancer.Choice
		class     *string
		given     string
		announced bool
	}{
		{"no class", byDefault, nil, "", true},
		{"our class", byDefault, &ours, "", true},
		{"another class", byDefault, &theirs, "", false},
		{"no class, where another load balancer is the default", only, nil, "", false},
		{"our class, where another load balancer is the default", only, &ours, "", true},
		{"no class, given before another became the default", only, nil, "lan", true},
		{"our class by a flag", renamed, &own, "", true},
		{"no class beside that", renamed, nil, "", true},
		{"the class that is ours without the flag", renamed, &ours, "", false},
	} {
		svc := sharer("a", 80)
		svc.Spec.LoadBalancerClass = c.class
		if c.given != "" {
			svc.Annotations[loadbalancer.AnnotationGiven] = c.given
		}
		p := Compile(snapshot.Of(readyNode("n1", ""), lanPool("10.0.0.40-10.0.0.60"), svc), "n1",
			View{Alive: living("n1"), Facts: map[string]Facts{}}, epoch0(), Options{LoadBalancers: c.choice})
		if announced := p.L2.Owners.Len() > 0; announced != c.announced {
			t.Errorf("%s: announced: %v, problems %v", c.name, announced, p.Problems)
		}
	}
}
