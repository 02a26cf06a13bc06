package route

import (
	"cmp"
	"crypto/tls"
	"slices"
	"time"

	"quayside.io/controller/snapshot"
)

const (
	// DefaultController is spec.controller of the IngressClasses that are ours.
	DefaultController = "quayside.io/ingress"
	// DefaultClass is the name of the IngressClass that we serve.
	DefaultClass = "quayside"

	// nginxController is the controller whose classes bring their quirks.
	nginxController = "k8s.io/ingress-nginx"
	nginxClass      = "nginx" // what its users wrote into the legacy annotation
)

// Options say which Ingresses are ours. The zero value serves the class
// "quayside" of the controller "quayside.io/ingress".
type Options struct {
	// IngressClass is the name of the class served, also in the legacy
	// annotation. Other classes of the same controller are left alone, because a
	// second Quayside may serve them; to serve them all, adopt the controller.
	IngressClass string
	// Controller is what spec.controller of that class must be, if the class
	// exists. It need not exist: nobody else can claim an absent class.
	Controller string
	// AdoptControllers are further controllers whose classes are all served.
	AdoptControllers []string
	// WithoutClass serves Ingresses that name no class, too. Otherwise they are
	// served only if a class of ours is marked as the default.
	WithoutClass bool
	// WatchNamespace, if set, is the only namespace whose Ingresses are served.
	WatchNamespace string

	// DefaultCertificate is the Secret for server names without certificate.
	DefaultCertificate snapshot.Key
	// FallbackCertificate stands in while that Secret is not usable. Whoever
	// calls makes it, since a pure room has no randomness; it may be nil.
	FallbackCertificate *tls.Certificate

	// Now judges certificates. If it is zero, none expires.
	Now time.Time
}

func (o Options) withDefaults() Options {
	o.IngressClass = cmp.Or(o.IngressClass, DefaultClass)
	o.Controller = cmp.Or(o.Controller, DefaultController)
	return o
}

// sameRules reports whether o and p judge every Ingress alike. What only
// concerns the default certificate and the time is left out.
func (o Options) sameRules(p Options) bool {
	return o.IngressClass == p.IngressClass && o.Controller == p.Controller &&
		slices.Equal(o.AdoptControllers, p.AdoptControllers) &&
		o.WithoutClass == p.WithoutClass && o.WatchNamespace == p.WatchNamespace
}
