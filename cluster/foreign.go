package cluster

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// foreign are the API paths of MetalLB's objects and of Ingresses. Where a line
// has several, the first that the API server serves counts.
func foreign() [][]string {
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
		{"/apis/networking.k8s.io/v1/ingresses"},
	}
}

// Foreign reads the objects of MetalLB and all Ingresses from the cluster of a
// kubeconfig (empty: the pod's own account) and returns them as JSON, a YAML
// document for each answer. What the cluster does not have is left out.
func Foreign(ctx context.Context, kubeconfig string) ([]byte, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "quayside-migrate"
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster access: %w", err)
	}
	var all bytes.Buffer
	for _, paths := range foreign() {
		for _, path := range paths {
			text, err := client.Get().AbsPath(path).Do(ctx).Raw()
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			all.Write(text)
			all.WriteString("\n---\n")
			break
		}
	}
	return all.Bytes(), nil
}
