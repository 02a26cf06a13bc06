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
			covered := true
			for _, condition := range policy.Spec.MatchConditions {
				covered = covered && evaluate(t, condition.Expression, scope).(bool)
			}
			if covered != test.covered {
				t.Fatalf("covered %v, want %v", covered, test.covered)
			}
			if !covered {
				return
			}
			variables := map[string]any{}
			for _, variable := range policy.Spec.Variables {
				variables[variable.Name] = evaluate(t, variable.Expression, scope)
			}
			scope["variables"] = variables
			if len(policy.Spec.Validations) != 1 {
				t.Fatalf("%d validations, want one", len(policy.Spec.Validations))
			}
			validation := policy.Spec.Validations[0]
			allowed := evaluate(t, validation.Expression, scope).(bool)
			if allowed != (test.message == "") {
				t.Fatalf("allowed %v, want message %q", allowed, test.message)
			}
			if message := evaluate(t, validation.MessageExpression, scope).(string); !allowed && !strings.Contains(message, test.message) {
				t.Errorf("message %q, want %q in it", message, test.message)
			}
		})
	}
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
		cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("variables", cel.DynType))
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
