package migrate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// cert-manager answers a challenge of HTTP-01 by an Ingress of the class that a solver of the
// issuer names. Once a host leads to our proxies, nobody answers there for the class that it
// had: its certificate is not renewed, and weeks later that is noticed.

// Annotations of cert-manager on Ingresses.
const (
	clusterIssuerAnnotation = "cert-manager.io/cluster-issuer"
	issuerAnnotation        = "cert-manager.io/issuer"
	issuerKindAnnotation    = "cert-manager.io/issuer-kind"
	acmeAnnotation          = "kubernetes.io/tls-acme"
	inPlaceAnnotation       = "acme.cert-manager.io/http01-edit-in-place"
	// These say another class than the solver does, by its name and by the annotation that
	// came before that.
	solverClassName = "acme.cert-manager.io/http01-ingress-ingressclassname" // since 1.20
	solverClass     = "acme.cert-manager.io/http01-ingress-class"
)

// challengeLabel is on what cert-manager makes for one challenge.
const challengeLabel = "acme.cert-manager.io/http01-solver"

// issuer is an Issuer or a ClusterIssuer of cert-manager.
type issuer struct{ kind, namespace, name string }

func (i issuer) String() string {
	if i.namespace == "" {
		return i.kind + " " + i.name
	}
	return i.kind + " " + i.namespace + "/" + i.name
}

// takeIssuer remembers the classes of Ingresses by which an issuer has challenges answered.
func (m *Migration) takeIssuer(s *source) error {
	var spec struct {
		ACME struct {
			Solvers []struct {
				HTTP01 struct {
					Ingress struct {
						Class            string `json:"class"`
						IngressClassName string `json:"ingressClassName"`
					} `json:"ingress"`
				} `json:"http01"`
			} `json:"solvers"`
		} `json:"acme"`
	}
	if len(s.Spec) > 0 {
		if err := json.Unmarshal(s.Spec, &spec); err != nil {
			return fmt.Errorf("spec: %w", err)
		}
	}
	classes := []string{}
	for _, solver := range spec.ACME.Solvers {
		in := solver.HTTP01.Ingress
		classes = append(classes, in.Class, in.IngressClassName)
	}
	if m.issuers == nil {
		m.issuers = map[issuer][]string{}
	}
	m.issuers[issuer{s.Kind, s.Metadata.Namespace, s.Metadata.Name}] = classes
	m.pass(s)
	return nil
}

// issuerOf is who issues the certificates of an Ingress, if cert-manager does. One without a
// name is the default of cert-manager.
func issuerOf(meta Meta) (i issuer, does bool) {
	if name := meta.Annotations[clusterIssuerAnnotation]; name != "" {
		return issuer{"ClusterIssuer", "", name}, true
	}
	if name := meta.Annotations[issuerAnnotation]; name != "" {
		if meta.Annotations[issuerKindAnnotation] == "ClusterIssuer" {
			return issuer{"ClusterIssuer", "", name}, true
		}
		return issuer{"Issuer", meta.Namespace, name}, true
	}
	return issuer{}, meta.Annotations[acmeAnnotation] == "true"
}

// challenges says whether the certificates of an Ingress are still renewed once it is of
// another class, and has an annotation that names its class name the new one.
func (m *Migration) challenges(meta Meta, was, is string) (notes []string) {
	by, does := issuerOf(meta)
	if !does || was == is {
		return nil
	}
	named := false
	for _, key := range []string{solverClassName, solverClass} {
		value, set := meta.Annotations[key]
		if named = named || set; set && value == was {
			meta.Annotations[key] = is
		}
	}
	if named || strings.EqualFold(meta.Annotations[inPlaceAnnotation], "true") {
		return nil
	}
	classes, known := m.issuers[by]
	switch {
	case !known:
		m.unknownIssuers++
	case slices.Contains(classes, was):
		notes = append(notes, fmt.Sprintf("%s has challenges (HTTP-01) answered by Ingresses of class %s, which nobody serves at this host once its name leads to our proxies: its certificate would not be renewed; "+
			"give %s a solver of class %s for the hosts that move (selector.dnsNames), or set %s: %s here (cert-manager 1.20 or later)", by, was, by, is, solverClassName, is))
	}
	return notes
}

// otherIssuers is said where it is not known how certificates are renewed.
func (m *Migration) otherIssuers() []string {
	if m.unknownIssuers == 0 {
		return nil
	}
	return []string{fmt.Sprintf("cert-manager renews the certificates of %d Ingresses: where a solver of their issuer names the class that they had (http01.ingress), it must name the new one once their hosts have moved; "+
		"give the Issuers and ClusterIssuers too, and each Ingress says so that needs it", m.unknownIssuers)}
}
