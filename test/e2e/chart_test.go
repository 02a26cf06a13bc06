package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// learned bounds the wait until an API server enforces or serves what it was told.
const learned = 30 * time.Second

// apiServer returns a cluster whose API server knows the chart's CRDs, accounts,
// rights and policies; no process of the chart needs to run in it.
func apiServer(t *testing.T) *lab.Cluster {
	t.Helper()
	c := bare(t)
	makeNamespace(t, c, lab.SystemNamespace)
	crds, objects, err := chart.Render("quayside", lab.SystemNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		apply(t, c, crd)
	}
	for _, o := range objects {
		switch o.GroupVersionKind().Group {
		case "rbac.authorization.k8s.io", "admissionregistration.k8s.io":
			apply(t, c, o)
		case "":
			if o.GetKind() == "ServiceAccount" || o.GetKind() == "Namespace" {
				apply(t, c, o)
			}
		}
	}
	for _, crd := range crds {
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		c.Eventually(learned, func() error {
			_, err := c.Dynamic().Resource(v1alpha1.GroupVersion().WithResource(plural)).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return c
}

// apply has the cluster hold an object.
func apply(t *testing.T, c *lab.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.TryApply(string(text)); err != nil {
		t.Fatal(err)
	}
}

func makeNamespace(t *testing.T, c *lab.Cluster, name string) {
	t.Helper()
	_, err := c.Kube().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// plural is the resource of a kind that the chart or a fixture uses.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// dryRun asks the server what it thinks of o, strictly, and changes nothing.
func dryRun(ctx context.Context, c *lab.Cluster, o *unstructured.Unstructured) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = c.Dynamic().Resource(o.GroupVersionKind().GroupVersion().WithResource(plural(o.GetKind())))
	if o.GetNamespace() != "" {
		client = client.(dynamic.NamespaceableResourceInterface).Namespace(o.GetNamespace())
	}
	force := true
	_, err = client.Patch(ctx, o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "chart-test", Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// TestChartIsAccepted: a real API server takes every object of the chart, with
// the defaults and with the values that reach the other templates.
func TestChartIsAccepted(t *testing.T) {
	beside(t)
	c := apiServer(t)
	makeNamespace(t, c, "shop")
	for _, values := range []string{
		``,
		`{networkPolicy: {enabled: true}, ingressClass: {default: true}, proxy: {watchNamespace: shop, autoscaling: {enabled: true}}}`,
		`{proxy: {kind: DaemonSet, hostNetwork: {enabled: true}, ports: {http: 80, https: 443}, service: {type: NodePort}}}`,
	} {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		crds, objects, err := chart.Render("quayside", lab.SystemNamespace, v)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range append(crds, objects...) {
			if err := dryRun(t.Context(), c, o); err != nil {
				t.Errorf("values %q: %s %s: %v", values, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// TestChartFixtures: what the unit tests of the CRDs say holds for a real
// server, too: the objects of MetalLB and ours are taken, bad ones are refused
// with the promised words.
func TestChartFixtures(t *testing.T) {
	beside(t)
	c := apiServer(t)
	server, err := c.Kube().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	tellsType := version.MustParseGeneric(server.GitVersion).LessThan(version.MajorMinor(1, 35))
	files, err := filepath.Glob("../chart/testdata/*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("fixtures: %q, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
			o := new(unstructured.Unstructured)
			if err := yaml.Unmarshal(doc, &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			want := ""
			for line := range bytes.Lines(doc) {
				if rest, ok := bytes.CutPrefix(line, []byte("# refused: ")); ok {
					want = strings.TrimSpace(string(rest))
				}
			}
			if tellsType {
				want = withoutValue(want)
			}
			// Not by server-side apply, which tells a key that occurs twice in words of its own.
			_, err := c.Dynamic().Resource(v1alpha1.GroupVersion().WithResource(plural(o.GetKind()))).Create(t.Context(), o, metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
			})
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: refused: %v\n%s", file, err, doc)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: answer %v, want %q for\n%s", file, err, want, doc)
			}
		}
	}
}

// withoutValue is what an API server before Kubernetes 1.35 says where a rule refuses a
// string.
func withoutValue(words string) string {
	return regexp.MustCompile(`: Invalid value: "(\\.|[^"\\])*": `).ReplaceAllString(words, `: Invalid value: "string": `)
}

// TestSpeakerWritesItsOwnNode: the token of a speaker's pod opens the
// SpeakerStatus of that pod's node, no other, and a token of no pod opens none.
func TestSpeakerWritesItsOwnNode(t *testing.T) {
	beside(t)
	c := apiServer(t)
	statuses := v1alpha1.GroupVersion().WithResource("speakerstatuses")
	// Nodes that no real speaker speaks for: a pod needs no Node object to be bound to one.
	const n1, n2 = "chart-test-1", "chart-test-2"
	bound, loose := speakerClient(t, c, n1), speakerClient(t, c, "")
	t.Cleanup(func() {
		for _, node := range []string{n1, n2} {
			err := c.Dynamic().Resource(statuses).Delete(context.Background(), node, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
	status := func(node string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion().String(), "kind": "SpeakerStatus", "metadata": map[string]any{"name": node},
		}}
	}
	leave := []byte(`{"status":{"leaving":true}}`)
	refused := func(err error, words string) error {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("answer %v, want a refusal with %q", err, words)
		}
		return nil
	}

	// The server takes a moment to enforce a new policy: a dry run tells when.
	c.Eventually(learned, func() error {
		_, err := bound.Resource(statuses).Create(t.Context(), status(n2), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refused(err, "this token is bound to node "+n1+", the object is named "+n2)
	})
	if _, err := bound.Resource(statuses).Create(t.Context(), status(n1), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Errorf("create its own: %v", err)
	}
	if _, err := bound.Resource(statuses).Patch(t.Context(), n1, types.MergePatchType, leave, metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("patch its own status: %v", err)
	}
	_, err := loose.Resource(statuses).Patch(t.Context(), n1, types.MergePatchType, leave, metav1.PatchOptions{}, "status")
	if err := refused(err, "this token is bound to no node"); err != nil {
		t.Error(err)
	}
	// Others need the right, not the node.
	if _, err := c.Dynamic().Resource(statuses).Create(t.Context(), status(n2), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Errorf("an administrator: %v", err)
	}
	_, err = bound.Resource(statuses).Patch(t.Context(), n2, types.MergePatchType, leave, metav1.PatchOptions{}, "status")
	if err := refused(err, "the object is named "+n2); err != nil {
		t.Error(err)
	}
}

// speakerClient returns a client with the speaker's account: as a pod on node,
// or, without a node, with a token of the account alone.
func speakerClient(t *testing.T, c *lab.Cluster, node string) dynamic.Interface {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if node != "" {
		pods := c.Kube().CoreV1().Pods(lab.SystemNamespace)
		pod, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "token-"},
			Spec: corev1.PodSpec{
				NodeName: node, ServiceAccountName: "quayside-speaker",
				Containers: []corev1.Container{{Name: "none", Image: "none"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := int64(0)
		t.Cleanup(func() {
			if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Error(err)
			}
		})
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	client, err := dynamic.NewForConfig(accountConfig(t, c, "quayside-speaker", request))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// accountConfig is access with a token of an account of the chart.
func accountConfig(t *testing.T, c *lab.Cluster, account string, request *authenticationv1.TokenRequest) *rest.Config {
	t.Helper()
	namespace := lab.SystemNamespace
	if account == "quayside-proxy" {
		namespace = lab.ProxyNamespace
	}
	token, err := c.Kube().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	config.Timeout = 10 * time.Second
	config.Dial = c.Node(1).Dial // the API server lives on the lab's LAN
	return config
}
