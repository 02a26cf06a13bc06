package chart

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	celenv "k8s.io/apiserver/pkg/cel/environment"
)

// TestAdmission evaluates the policy's own expressions as the API server does:
// a speaker writes the SpeakerStatus of the node that its token names.
func TestAdmission(t *testing.T) {
	objects := rendered(t, nil)
	policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "quayside-speakerstatus-own-node")
	binding := find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, policy.Name)
	if binding.Spec.PolicyName != policy.Name || len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionregistrationv1.Deny {
		t.Errorf("the binding does not deny: %+v", binding.Spec)
	}
	if policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Error("failurePolicy is not Fail: an error in the policy would let everybody through")
	}
	rule := policy.Spec.MatchConstraints.ResourceRules[0]
	if got := strings.Join(rule.Resources, " "); got != "speakerstatuses speakerstatuses/status" {
		t.Errorf("the policy covers %s: the status subresource is the one that matters", got)
	}

	speaker := "system:serviceaccount:quayside-system:quayside-speaker"
	for name, test := range map[string]struct {
		user    string
		node    []any // of the token; nil: no such entry
		noExtra bool
		object  string
		covered bool
		message string // empty: allowed
	}{
		"own node":       {user: speaker, node: []any{"n1"}, object: "n1", covered: true},
		"other node":     {user: speaker, node: []any{"n1"}, object: "n2", covered: true, message: "bound to node n1, the object is named n2"},
		"not bound":      {user: speaker, object: "n1", covered: true, message: "bound to no node"},
		"no extra":       {user: speaker, noExtra: true, object: "n1", covered: true, message: "bound to no node"},
		"two nodes":      {user: speaker, node: []any{"n1", "n2"}, object: "n1", covered: true, message: "bound to node n1"},
		"administrator":  {user: "admin", object: "n1"},
		"other account":  {user: "system:serviceaccount:other:quayside-speaker", node: []any{"n9"}, object: "n1"},
		"name of prefix": {user: speaker + "2", object: "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			extra := map[string]any{"authentication.kubernetes.io/pod-name": []any{"p"}}
			if test.node != nil {
				extra["authentication.kubernetes.io/node-name"] = test.node
			}
			info := map[string]any{"username": test.user, "extra": extra}
			if test.noExtra {
				delete(info, "extra")
			}
			scope := map[string]any{
				"request": map[string]any{"operation": "UPDATE", "userInfo": info},
				"object":  map[string]any{"metadata": map[string]any{"name": test.object}},
			}
			covered, allowed := judge(t, policy, scope)
			if covered != test.covered {
				t.Fatalf("covered %v, want %v", covered, test.covered)
			}
			if !covered {
				return
			}
			if allowed != (test.message == "") {
				t.Fatalf("allowed %v, want message %q", allowed, test.message)
			}
			if message := evaluate(t, policy.Spec.Validations[0].MessageExpression, scope).(string); !allowed && !strings.Contains(message, test.message) {
				t.Errorf("message %q, want %q in it", message, test.message)
			}
		})
	}
}

// TestStatusesOnly: whoever has the controller's token changes the status and one
// annotation of an Ingress or a Service and nothing else of it, through no door.
func TestStatusesOnly(t *testing.T) {
	for name, test := range map[string]struct{ resources, annotated string }{
		"ingress-problems-only": {"ingresses ingresses/status", "ingress.quayside.io/problems"},
		"service-pools-only":    {"services services/status", "quayside.io/ip-allocated-from-pool"},
	} {
		t.Run(name, func(t *testing.T) { statusesOnly(t, name, test.resources, test.annotated) })
	}
}

func statusesOnly(t *testing.T, name, resources, annotated string) {
	t.Helper()
	objects := rendered(t, map[string]any{"controller": map[string]any{"ingressProblems": false}}) // statuses stay
	policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "quayside-"+name)
	binding := find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, policy.Name)
	if binding.Spec.PolicyName != policy.Name || len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionregistrationv1.Deny {
		t.Errorf("the binding does not deny: %+v", binding.Spec)
	}
	if got := strings.Join(policy.Spec.MatchConstraints.ResourceRules[0].Resources, " "); got != resources {
		t.Errorf("the policy covers %s, want %s", got, resources)
	}
	ingress := func(annotations map[string]any, host string, more ...string) map[string]any {
		meta := map[string]any{"name": "web"}
		if annotations != nil {
			meta["annotations"] = annotations
		}
		for _, name := range more {
			meta[name] = map[string]any{"x": "y"}
		}
		return map[string]any{"metadata": meta, "spec": map[string]any{"rules": []any{map[string]any{"host": host}}}}
	}
	said, option := map[string]any{annotated: "Bad: b"}, map[string]any{"ingress.quayside.io/cors": "true"}
	both := map[string]any{annotated: "Bad: b", "ingress.quayside.io/cors": "true"}
	for name, test := range map[string]struct {
		before, after map[string]any
		allowed       bool
	}{
		"the first":             {ingress(nil, "a"), ingress(said, "a"), true},
		"the last goes":         {ingress(said, "a"), ingress(nil, "a"), true},
		"beside others":         {ingress(option, "a"), ingress(both, "a"), true},
		"another host":          {ingress(nil, "a"), ingress(said, "b"), false},
		"another annotation":    {ingress(nil, "a"), ingress(both, "a"), false},
		"an annotation goes":    {ingress(option, "a"), ingress(said, "a"), false},
		"an annotation changes": {ingress(option, "a"), ingress(map[string]any{"ingress.quayside.io/cors": "false"}, "a"), false},
		"a label":               {ingress(nil, "a"), ingress(said, "a", "labels"), false},
		"a finalizer":           {ingress(nil, "a"), ingress(said, "a", "finalizers"), false},
		"an owner":              {ingress(nil, "a"), ingress(said, "a", "ownerReferences"), false},
	} {
		for user, covered := range map[string]bool{"system:serviceaccount:quayside-system:quayside-controller": true, "admin": false} {
			scope := map[string]any{"request": map[string]any{"userInfo": map[string]any{"username": user}}, "oldObject": test.before, "object": test.after}
			got, allowed := judge(t, policy, scope)
			if got != covered || covered && allowed != test.allowed {
				t.Errorf("%s, by %s: covered %v, allowed %v; want %v, %v", name, user, got, allowed, covered, test.allowed)
			}
		}
	}
}

// judge says whether a policy with one validation is about a request, and if so, whether
// it allows it.
func judge(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, scope map[string]any) (covered, allowed bool) {
	t.Helper()
	for _, condition := range policy.Spec.MatchConditions {
		if !evaluate(t, condition.Expression, scope).(bool) {
			return false, false
		}
	}
	variables := map[string]any{}
	for _, variable := range policy.Spec.Variables {
		variables[variable.Name] = evaluate(t, variable.Expression, scope)
	}
	scope["variables"] = variables
	if len(policy.Spec.Validations) != 1 {
		t.Fatalf("%d validations, want one", len(policy.Spec.Validations))
	}
	return true, evaluate(t, policy.Spec.Validations[0].Expression, scope).(bool)
}

// oldest is what CEL can do on Kubernetes 1.32, the oldest that Chart.yaml
// allows: a server takes new expressions only if the release before its own
// understands them too.
func oldest() *celenv.EnvSet { return celenv.MustBaseEnvSet(version.MajorMinor(1, 31)) }

// evaluate runs one expression in the environment of an API server.
func evaluate(t *testing.T, expression string, scope map[string]any) any {
	t.Helper()
	base, err := oldest().Env(celenv.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(
		cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	result, _, err := program.Eval(scope)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return result.Value()
}
