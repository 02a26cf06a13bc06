//go:build oracle

// What becomes of the Services of a cluster, by the controller; see main.go beside this folder.
package main

import (
	"net"
	"slices"

	kitlog "github.com/go-kit/log"
	v1 "k8s.io/api/core/v1"

	metallbv1beta1 "go.universe.tf/metallb/api/v1beta1"
	"go.universe.tf/metallb/internal/allocator"
	"go.universe.tf/metallb/internal/allocator/k8salloc"
	"go.universe.tf/metallb/internal/config"
	"go.universe.tf/metallb/internal/k8s/controllers"
)

type cluster struct {
	Pools      []metallbv1beta1.IPAddressPool
	Namespaces []v1.Namespace
	Known      []*v1.Service // as they were before the last change
	Services   []*v1.Service
}

type answer struct {
	Error    string        // what is wrong with the pools
	Services []*v1.Service // in the order of the question
}

// answer has a controller that knows the Services as they were look at each until none changes.
func (asked *cluster) answer() answer {
	c := &controller{client: silent{}, ips: allocator.New(func(string) {})}
	pools, err := config.For(config.ClusterResources{Pools: asked.Pools, Namespaces: asked.Namespaces}, config.DontValidate, config.ForOptions{})
	if err != nil {
		return answer{Error: err.Error()}
	}
	quiet := kitlog.NewNopLogger()
	c.SetPools(quiet, pools.Pools)
	for _, svc := range asked.Known {
		c.remember(svc)
	}
	for _, svc := range asked.Known {
		if !slices.ContainsFunc(asked.Services, func(now *v1.Service) bool { return now.Name == svc.Name }) {
			c.SetBalancer(quiet, svc.Namespace+"/"+svc.Name, nil, nil)
		}
	}
	for range 10 {
		again := false
		for i, svc := range asked.Services {
			c.client = silent{func(now *v1.Service) { asked.Services[i], again = now, true }}
			again = c.SetBalancer(quiet, svc.Namespace+"/"+svc.Name, svc, nil) == controllers.SyncStateReprocessAll || again
		}
		if !again {
			break
		}
	}
	return answer{Services: asked.Services}
}

// remember has the controller know what it gave a Service before. What is not allowed any more
// it does not take.
func (c *controller) remember(svc *v1.Service) {
	var ips []net.IP
	for _, in := range svc.Status.LoadBalancer.Ingress {
		ips = append(ips, net.ParseIP(in.IP))
	}
	if len(ips) > 0 {
		_ = c.ips.Assign(svc.Namespace+"/"+svc.Name, svc, ips, k8salloc.Ports(svc), SharingKey(svc), k8salloc.BackendKey(svc))
	}
}

// silent writes what the controller writes to nobody but the oracle.
type silent struct{ write func(*v1.Service) }

func (s silent) UpdateStatus(svc *v1.Service) error {
	s.write(svc.DeepCopy())
	return nil
}
func (silent) Infof(*v1.Service, string, string, ...interface{})  {}
func (silent) Errorf(*v1.Service, string, string, ...interface{}) {}
