package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rights is everything that Quayside may do in a cluster. A right that is not
// in this list is not given, and one that is here has a line of code that
// needs it: a longer list is a decision to be argued for, not a fix.
func rights() []string {
	return []string{
		// What its decisions rest on.
		"controller, everywhere: get list watch namespaces nodes services",
		// Because one that is missing or broken is told on the Ingress, and to pass it on.
		"controller, everywhere: get list watch configmaps secrets",
		"controller, everywhere: get list watch endpointslices.discovery.k8s.io",
		"controller, everywhere: get list watch ingressclasses.networking.k8s.io ingresses.networking.k8s.io",
		"controller, everywhere: get list watch bfdprofiles.quayside.io bgpadvertisements.quayside.io bgppeers.quayside.io communities.quayside.io ipaddresspools.quayside.io l2advertisements.quayside.io speakerstatuses.quayside.io",
		// Statuses have one writer.
		"controller, everywhere: patch services/status",
		"controller, everywhere: patch ingresses.networking.k8s.io/status",
		"controller, everywhere: patch ipaddresspools.quayside.io/status",
		// One annotation, in which it says what is wrong; TestStatusesOnly holds it to that.
		"controller, everywhere: patch ingresses.networking.k8s.io",
		"controller, everywhere: create events.events.k8s.io",
		// What the proxies may read, which ends with their ClusterRole. Nobody grants
		// what he may not do himself, so neither bind nor escalate is among these.
		"controller, everywhere: create rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io",
		"controller, everywhere: update rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io quayside-proxy-references",
		"controller, everywhere: delete list rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io quayside-proxy-references",
		// With these it goes, and so does what the processes make themselves. Whoever gives an
		// object an owner must, with an admission plugin that some clusters have, be allowed to
		// delete it; a SpeakerStatus is deleted when its Node is gone.
		"controller, everywhere: get clusterroles.rbac.authorization.k8s.io quayside-controller quayside-proxy quayside-speaker",
		"speaker, everywhere: get clusterroles.rbac.authorization.k8s.io quayside-controller",
		"controller, everywhere: delete patch speakerstatuses.quayside.io",
		// Leader election, the gossip key and the keys of TLS session tickets. A create
		// cannot be held to a name.
		"controller, quayside-system: create leases.coordination.k8s.io",
		"controller, quayside-system: delete get update leases.coordination.k8s.io quayside-controller",
		"controller, quayside-system: create secrets",
		"controller, quayside-system: delete get update secrets quayside-members quayside-session-tickets",
		// Passwords of BGP sessions, which are here only, the speakers are given one by one.
		"controller, quayside-system: create rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io",
		"controller, quayside-system: delete list update rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io quayside-speaker-references",
		// A change of the gossip key waits for the nodes that have a speaker.
		"controller, quayside-system: list pods",

		// Whose token it is that asks for the metrics, and whether he may have them.
		"controller, everywhere: create tokenreviews.authentication.k8s.io",
		"controller, everywhere: create subjectaccessreviews.authorization.k8s.io",
		"speaker, everywhere: create tokenreviews.authentication.k8s.io",
		"speaker, everywhere: create subjectaccessreviews.authorization.k8s.io",
		"proxy, everywhere: create tokenreviews.authentication.k8s.io",
		"proxy, everywhere: create subjectaccessreviews.authorization.k8s.io",

		"speaker, everywhere: get list watch nodes services",
		"speaker, everywhere: get list watch endpointslices.discovery.k8s.io",
		"speaker, everywhere: get list watch bfdprofiles.quayside.io bgpadvertisements.quayside.io bgppeers.quayside.io communities.quayside.io ipaddresspools.quayside.io l2advertisements.quayside.io speakerstatuses.quayside.io",
		// Its own node's only: see TestAdmission.
		"speaker, everywhere: create speakerstatuses.quayside.io",
		"speaker, everywhere: patch speakerstatuses.quayside.io/status",
		"speaker, everywhere: create events.events.k8s.io",

		// How many of them start at the same time, which says how long each waits.
		"speaker, quayside-system: get daemonsets.apps quayside-speaker",
		"proxy, quayside-proxy: get deployments.apps quayside-proxy",

		// Whose token people show to the controller by way of the API server.
		"viewer, everywhere: get /status /trace",

		// The proxy writes nothing, and the chart gives it one Secret: the keys of TLS
		// session tickets.
		"proxy, quayside-system: get list watch secrets quayside-session-tickets",
		// Namespaces, because the Ingresses of one that is terminating yield to others.
		"proxy, everywhere: get list watch namespaces nodes",
		"proxy, everywhere: get list watch ingressclasses.networking.k8s.io",
		"proxy, everywhere: get list watch speakerstatuses.quayside.io",
		"proxy, everywhere: get list watch services",
		"proxy, everywhere: get list watch endpointslices.discovery.k8s.io",
		"proxy, everywhere: get list watch ingresses.networking.k8s.io",
	}
}

func TestRights(t *testing.T) {
	got := granted(t, rendered(t, nil))
	if diff := cmp.Diff(slices.Sorted(slices.Values(rights())), got); diff != "" {
		t.Errorf("rights of the chart (-want +got):\n%s", diff)
	}
}

// TestRightsToAllSecrets: with proxy.secretAccess Cluster the proxy reads every
// Secret, and the controller grants nothing, but takes back what it granted before.
func TestRightsToAllSecrets(t *testing.T) {
	var want []string
	for _, right := range rights() {
		if strings.Contains(right, "delete list rolebindings") || strings.HasPrefix(right, "controller, quayside-system:") {
			want = append(want, right)
		} else if strings.Contains(right, "clusterroles") {
			want = append(want, strings.Replace(right, " quayside-proxy", "", 1))
		} else if !strings.Contains(right, "rbac.authorization") {
			want = append(want, strings.Replace(right, "proxy, everywhere: get list watch services", "proxy, everywhere: get list watch configmaps secrets services", 1))
		}
	}
	got := granted(t, rendered(t, map[string]any{"proxy": map[string]any{"secretAccess": "Cluster"}}))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("rights to all Secrets (-want +got):\n%s", diff)
	}
}

// TestRightsOfOneNamespace: with proxy.watchNamespace, the proxy reads Secrets
// and everything else that belongs to a namespace there only, and the controller
// reads and grants them there only; what was granted elsewhere before it takes back.
// What the speakers are given, it reads in the release's namespace.
func TestRightsOfOneNamespace(t *testing.T) {
	for _, namespace := range []string{"shop", "cluster"} { // any word is the name of somebody's namespace
		t.Run(namespace, func(t *testing.T) { testRightsOfOneNamespace(t, namespace) })
	}
}

func testRightsOfOneNamespace(t *testing.T, namespace string) {
	got := granted(t, rendered(t, map[string]any{"proxy": map[string]any{"watchNamespace": namespace}}))
	want := []string{"controller, quayside-system: get list watch secrets"}
	for _, right := range rights() {
		narrowed := strings.HasPrefix(right, "proxy") && !strings.HasSuffix(right, " nodes") && !strings.Contains(right, "ingressclasses") && !strings.Contains(right, "reviews") && !strings.Contains(right, "speakerstatuses") && !strings.Contains(right, "deployments")
		narrowed = narrowed || strings.HasPrefix(right, "controller, everywhere:") && (strings.Contains(right, " secrets") || strings.Contains(right, "roles.rbac") || strings.HasSuffix(right, " patch ingresses.networking.k8s.io"))
		narrowed = narrowed && !strings.Contains(right, "clusterroles") && !strings.Contains(right, "delete list rolebindings")
		if narrowed {
			right = strings.Replace(right, "everywhere", namespace, 1)
		}
		want = append(want, right)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("rights with watchNamespace (-want +got):\n%s", diff)
	}
}

// TestRightsToPasswords: the chart gives no speaker a Secret. The controller may pass on those
// of the release's namespace where there are speakers, and does not read them twice.
func TestRightsToPasswords(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`: {"create", "delete list update"},
		`{proxy: {watchNamespace: quayside-system, secretAccess: Cluster}}`: {"create", "delete list update"},
		`{proxy: {enabled: false, watchNamespace: shop}}`:                   {"create", "delete list update", "get list watch secrets"},
		`{speaker: {enabled: false}, proxy: {watchNamespace: shop}}`:        nil,
		`{rbac: {create: false}}`:                                           nil,
	} {
		var got []string
		for _, right := range granted(t, rendered(t, values(t, text))) {
			if strings.HasPrefix(right, "speaker, ") && strings.Contains(right, " secrets") {
				t.Errorf("%s: %s", text, right)
			}
			own, is := strings.CutPrefix(right, "controller, quayside-system: ")
			verbs, roles := strings.CutSuffix(strings.TrimSuffix(own, " quayside-speaker-references"), " rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io")
			if is && (roles || own == "get list watch secrets") {
				got = append(got, verbs)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestRightsOfAnAccountWithAName: what the proxies are granted keeps its name, by which
// it is found again, and what has that of the account may only be taken back.
func TestRightsOfAnAccountWithAName(t *testing.T) {
	var want []string
	for _, right := range rights() {
		if strings.HasPrefix(right, "controller, everywhere: delete list rolebindings") {
			right += " edge-references"
		}
		want = append(want, right)
	}
	got := granted(t, rendered(t, values(t, `{proxy: {serviceAccount: {name: edge}}}`)))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("rights with an account of another name (-want +got):\n%s", diff)
	}
}

// TestRightsToOptions: the ConfigMap with proxy-wide options may be read, wherever
// it is.
func TestRightsToOptions(t *testing.T) {
	for _, c := range []struct {
		proxy       map[string]any
		where, name string
	}{
		{map[string]any{"config": map[string]any{"hsts": "false"}}, "quayside-proxy", "quayside-proxy-options"},
		{map[string]any{"configMap": "ingress-nginx/ingress-nginx-controller"}, "ingress-nginx", "ingress-nginx-controller"},
	} {
		want := rights()
		for _, component := range []string{"proxy", "controller"} {
			want = append(want, fmt.Sprintf("%s, %s: get list watch configmaps %s", component, c.where, c.name))
		}
		got := granted(t, rendered(t, map[string]any{"proxy": c.proxy}))
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
			t.Errorf("rights with %v (-want +got):\n%s", c.proxy, diff)
		}
	}
}

// TestRightsToMetrics: the right to read metrics is there for anybody, bound to who
// is named, and to an account of the chart's own where a monitor needs a token. With
// open admin ports nobody needs it, and nobody asks whose a token is.
func TestRightsToMetrics(t *testing.T) {
	for text, want := range map[string]int{
		``: 0,
		`{metrics: {readers: [{namespace: monitoring, name: prometheus}]}}`:                                  1,
		`{metrics: {podMonitor: {enabled: true}}}`:                                                           1,
		`{metrics: {serviceMonitor: {enabled: true}, readers: [{namespace: monitoring, name: prometheus}]}}`: 2,
		`{metrics: {serviceMonitor: {enabled: true}, tokenSecret: mine}}`:                                    0,
	} {
		objects := rendered(t, values(t, text))
		role := find[*rbacv1.ClusterRole](t, objects, "quayside-metrics-reader")
		if len(role.Rules) != 1 || spell(role.Rules[0]) != "get /metrics" {
			t.Errorf("%s: %+v", text, role.Rules)
		}
		if got := isBound(objects, role.Name); got != want {
			t.Errorf("%s: bound to %d accounts, want %d", text, got, want)
		}
	}
	for _, auth := range []string{"None", "Loopback"} {
		for _, right := range granted(t, rendered(t, map[string]any{"adminAuth": auth})) {
			if strings.Contains(right, "reviews") || strings.Contains(right, "/metrics") {
				t.Errorf("adminAuth %s: %s", auth, right)
			}
		}
	}
}

// TestViewer: who looks at what the controller sees needs one port of one Service,
// which the chart has.
func TestViewer(t *testing.T) {
	var got []string
	ports := map[string]bool{}
	for _, object := range rendered(t, nil) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			if o.Name == "quayside-viewer" {
				for _, rule := range o.Rules {
					got = append(got, spell(rule))
				}
			}
		case *corev1.Service:
			for _, port := range o.Spec.Ports {
				ports[o.Name+":"+port.Name] = true
			}
		}
	}
	want := []string{
		"get services/proxy quayside-controller:admin http:quayside-controller:admin https:quayside-controller:admin",
		"create serviceaccounts/token quayside-viewer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights of a viewer (-want +got):\n%s", diff)
	}
	if !ports["quayside-controller:admin"] {
		t.Errorf("no Service quayside-controller has a port admin: %v", ports)
	}
}

// TestRightsOfWhatIsThere: a component that is turned off leaves nothing behind.
func TestRightsOfWhatIsThere(t *testing.T) {
	objects := rendered(t, map[string]any{
		"proxy": map[string]any{"enabled": false}, "speaker": map[string]any{"enabled": false},
	})
	for _, right := range granted(t, objects) {
		if !strings.HasPrefix(right, "controller,") && !strings.HasPrefix(right, "viewer,") {
			t.Errorf("left behind: %s", right)
		}
	}
	if got := granted(t, rendered(t, map[string]any{"rbac": map[string]any{"create": false}})); len(got) > 0 {
		t.Errorf("rights in spite of rbac.create=false: %q", got)
	}
}

// granted reads roles and bindings back as lines like those of rights.
func granted(t *testing.T, objects []runtime.Object) []string {
	t.Helper()
	accounts := map[string]string{}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			accounts[o.Name] = o.Labels["app.kubernetes.io/component"]
		case *rbacv1.ClusterRole:
			if o.Name == "quayside-metrics-reader" && isBound(objects, o.Name) == 0 {
				continue // for whom the administrator binds it to
			}
			rules["everywhere/"+o.Name] = o.Rules
			if o.AggregationRule != nil || len(o.Labels) == 0 {
				t.Errorf("ClusterRole %s: aggregates, or has no labels", o.Name)
			}
		case *rbacv1.Role:
			rules[o.Namespace+"/"+o.Name] = o.Rules
		}
	}
	var lines []string
	grant := func(where string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		found, ok := rules[where+"/"+ref.Name]
		if !ok || len(subjects) != 1 || subjects[0].Kind != "ServiceAccount" || accounts[subjects[0].Name] == "" {
			t.Errorf("binding of %s %s in %s is dangling or wider than one account: %v", ref.Kind, ref.Name, where, subjects)
			return
		}
		delete(rules, where+"/"+ref.Name)
		for _, rule := range found {
			lines = append(lines, fmt.Sprintf("%s, %s: %s", accounts[subjects[0].Name], where, spell(rule)))
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			grant("everywhere", o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			grant(o.Namespace, o.RoleRef, o.Subjects)
		}
	}
	delete(rules, "everywhere/quayside-viewer") // people are bound to it, see TestViewer
	for role := range rules {
		t.Errorf("role %s is bound to nobody", role)
	}
	slices.Sort(lines)
	return lines
}

// isBound counts the subjects that a ClusterRole is given to.
func isBound(objects []runtime.Object, name string) (subjects int) {
	for _, object := range objects {
		if b, ok := object.(*rbacv1.ClusterRoleBinding); ok && b.RoleRef.Name == name {
			subjects += len(b.Subjects)
		}
	}
	return subjects
}

// spell writes a rule as one line.
func spell(rule rbacv1.PolicyRule) string {
	var resources []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			name, sub, _ := strings.Cut(resource, "/")
			if group != "" {
				name += "." + group
			}
			if sub != "" {
				name += "/" + sub
			}
			resources = append(resources, name)
		}
	}
	slices.Sort(resources)
	verbs := slices.Sorted(slices.Values(rule.Verbs))
	return strings.Join(slices.Concat(verbs, resources, rule.ResourceNames, rule.NonResourceURLs), " ")
}
