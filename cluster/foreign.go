package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// foreignAddresses are the API paths of MetalLB's objects. Where a line has several,
// the first that the API server serves counts.
func foreignAddresses() [][]string {
	const metallb, old = "/apis/metallb.io/v1beta1/", "/apis/metallb.io/v1alpha1/"
	return [][]string{
		{metallb + "ipaddresspools"},
		{metallb + "addresspools", old + "addresspools"},
		{metallb + "l2advertisements"},
		{metallb + "bgpadvertisements"},
		{"/apis/metallb.io/v1beta2/bgppeers", metallb + "bgppeers"},
		{metallb + "bfdprofiles"},
		{metallb + "communities"},
		{"/api/v1/namespaces/metallb-system/configmaps/config"},
		{"/api/v1/namespaces/metallb-system/configmaps/bgpextras"},
		{"/apis/frrk8s.metallb.io/v1beta1/frrconfigurations"},
	}
}

// foreignIngresses is that of Ingresses.
func foreignIngresses() [][]string { return [][]string{{"/apis/networking.k8s.io/v1/ingresses"}} }

// foreignServices is that of Services.
func foreignServices() [][]string { return [][]string{{"/api/v1/services"}} }

// foreignBeside are those of what says whom NetworkPolicies let in, what ingress-nginx does by
// default, and how certificates are renewed.
func foreignBeside() [][]string {
	return [][]string{
		{"/apis/networking.k8s.io/v1/networkpolicies"},
		{"/api/v1/namespaces"},
		{"/api/v1/configmaps?labelSelector=app.kubernetes.io%2Fname%3Dingress-nginx"},
		{"/apis/cert-manager.io/v1/clusterissuers"},
		{"/apis/cert-manager.io/v1/issuers"},
	}
}

// ForeignKinds are what Foreign is to read.
type ForeignKinds struct {
	Addresses bool // the objects of MetalLB
	Ingresses bool
	Services  bool
	// Beside Ingresses: NetworkPolicies, namespaces, the ConfigMap of ingress-nginx, and the
	// issuers of cert-manager.
	Beside bool
}

// Foreign reads objects from the cluster of a kubeconfig (empty: the pod's own account) and
// returns them as JSON, a YAML document for each answer. What the cluster does not have is
// left out. So is what this account may not read, which is an error for each such path,
// beside the rest: the API server forbids kinds that it does not even have.
func Foreign(ctx context.Context, kubeconfig Kubeconfig, kinds ForeignKinds) ([]byte, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "quayside-migrate"
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // a refusal is a Status, with the reason
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster access: %w", err)
	}
	var all bytes.Buffer
	var denied []error
	for _, paths := range kinds.paths() {
		text, err := firstServed(ctx, client, paths)
		switch {
		case apierrors.IsForbidden(err):
			denied = append(denied, err)
		case err != nil:
			return nil, err
		case text != nil:
			all.Write(text)
			all.WriteString("\n---\n")
		}
	}
	return all.Bytes(), errors.Join(denied...)
}

func (k ForeignKinds) paths() (all [][]string) {
	for _, of := range []struct {
		wanted bool
		paths  [][]string
	}{{k.Addresses, foreignAddresses()}, {k.Ingresses, foreignIngresses()}, {k.Services, foreignServices()}, {k.Beside, foreignBeside()}} {
		if of.wanted {
			all = append(all, of.paths...)
		}
	}
	return all
}

// firstServed reads the first of paths that the API server has; nil: it has none.
func firstServed(ctx context.Context, client rest.Interface, paths []string) ([]byte, error) {
	for _, path := range paths {
		text, err := raw(client.Get().RequestURI(path).Do(ctx))
		switch {
		case err == nil:
			return text, nil
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return nil, nil
}

// raw is the body of an answer, and the error as the server says it: Raw alone calls
// every refusal unknown.
func raw(r rest.Result) ([]byte, error) {
	text, _ := r.Raw() // Error is the same, and says why
	return text, r.Error()
}
