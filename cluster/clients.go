package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"

	"quayside.io/api/v1alpha1"
)

const (
	// requestsPerSecond is generous: the API server protects itself by
	// priority and fairness, and a client that queues its own statuses is late.
	requestsPerSecond = 500

	protobuf = "application/vnd.kubernetes.protobuf"
	jsonType = "application/json"
)

// clients holds one REST client per API group, all over one connection.
type clients struct {
	config     *rest.Config
	http       *http.Client
	heard      *heard
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
	byGroup    map[schema.GroupVersion]rest.Interface
}

func newClients(kubeconfig Kubeconfig, component string, groups []schema.GroupVersion) (*clients, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "quayside-" + component
	config.Dial = dial
	heard := newHeard()
	config.Wrap(heard.wrap)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, 2*requestsPerSecond)
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster access: %w", err)
	}
	c := &clients{
		config: config, http: httpClient, heard: heard,
		codecs:     serializer.NewCodecFactory(scheme),
		parameters: runtime.NewParameterCodec(scheme),
		byGroup:    map[schema.GroupVersion]rest.Interface{},
	}
	for _, group := range groups {
		if c.byGroup[group], err = c.client(group); err != nil {
			return nil, fmt.Errorf("client for %s: %w", group, err)
		}
	}
	return c, nil
}

func (c *clients) client(group schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(c.config)
	config.GroupVersion = &group
	config.APIPath = "/apis"
	if group.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = c.codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf+","+jsonType
	if group == v1alpha1.GroupVersion() {
		config.ContentType, config.AcceptContentTypes = jsonType, jsonType
	}
	return rest.RESTClientForConfigAndClient(config, c.http)
}

// Kubeconfig says where a cluster is and who asks, as the flags of kubectl of these names do.
type Kubeconfig struct {
	File    string // empty: what $KUBECONFIG lists, the pod's own account, or kubectl's file
	Context string // empty: the current one
}

// loadConfig reads a kubeconfig file. Without one it reads what $KUBECONFIG lists,
// or uses the account of the pod it runs in, whose token it reads again as the
// kubelet renews it; outside of a pod, or where a context is named, it does what kubectl
// does.
func loadConfig(k Kubeconfig) (*rest.Config, error) {
	if k == (Kubeconfig{}) && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return config, nil
		} else if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("in-cluster account: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	chosen := &clientcmd.ConfigOverrides{CurrentContext: k.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, chosen).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster access: %w; give --kubeconfig FILE or run in a pod", err)
	}
	return config, nil
}
