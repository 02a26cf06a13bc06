package chart

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
)

// server judges objects as the API server does once the CRDs are installed.
type server map[string]*kindSchema

type kindSchema struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	cel        *cel.Validator
}

func newServer(t *testing.T) server {
	t.Helper()
	s := server{}
	for name, crd := range readCRDs(t) {
		if len(crd.Spec.Versions) != 1 {
			t.Fatalf("%s: %d versions, want one", name, len(crd.Spec.Versions))
		}
		k := &kindSchema{}
		var err error
		// The conversion moves the schema of an only version up here.
		props := crd.Spec.Validation.OpenAPIV3Schema
		if k.structural, err = schema.NewStructural(props); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if k.openAPI, _, err = validation.NewSchemaValidator(props); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		k.cel = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
		s[crd.Spec.Names.Kind] = k
	}
	return s
}

// readCRDs returns the generated CRDs in the server's internal form.
func readCRDs(t *testing.T) map[string]*apiextensions.CustomResourceDefinition {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in %s: run make generate (%v)", root, err)
	}
	crds := map[string]*apiextensions.CustomResourceDefinition{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var outer apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &outer); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(&outer)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&outer.Spec)
		outer.Status.StoredVersions = []string{v1alpha1.Version}
		inner := new(apiextensions.CustomResourceDefinition)
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&outer, inner, nil); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crds[filepath.Base(file)] = inner
	}
	return crds
}

// judge returns what the server would answer to a create of the object.
func (s server) judge(ctx context.Context, kind string, object map[string]any) []string {
	k := s[kind]
	if k == nil {
		return []string{"no CRD serves kind " + kind}
	}
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, k.structural)
	errs := validation.ValidateCustomResource(nil, object, k.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if k.cel != nil {
		found, _ := k.cel.Validate(ctx, nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, found...)
	}
	var messages []string
	for _, err := range errs {
		messages = append(messages, err.Error())
	}
	return messages
}

// fixture is one document of a file under testdata.
type fixture struct {
	file   string
	raw    []byte
	kind   string
	object map[string]any
	want   string // of the comment "# refused: …"
}

func fixtures(t *testing.T, folder string) []fixture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures in testdata/%s (%v)", folder, err)
	}
	var all []fixture
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			doc, err := reader.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			f := fixture{file: file, raw: doc}
			json, err := utilyaml.ToJSON(doc)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			// The server's own decoder: whole numbers become int64, which CEL
			// and the schema tell from floats.
			if err := utilyaml.Unmarshal(json, &f.object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			f.kind, _ = f.object["kind"].(string)
			for line := range bytes.Lines(doc) {
				if want, ok := strings.CutPrefix(string(line), "# refused: "); ok {
					f.want = strings.TrimSpace(want)
				}
			}
			all = append(all, f)
		}
	}
	return all
}

// TestCRDsAreValid asks the server's own validation, which also refuses rules
// that do not compile and rules that may cost more than their budget.
func TestCRDsAreValid(t *testing.T) {
	crds := readCRDs(t)
	if len(crds) != 7 {
		t.Errorf("%d CRDs, want 7", len(crds))
	}
	for name, crd := range crds {
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Errorf("%s: %v", name, err)
		}
		if crd.Spec.Scope != apiextensions.ClusterScoped {
			t.Errorf("%s: scope %s, want Cluster", name, crd.Spec.Scope)
		}
	}
}

// TestOldestServer: the rules compile on the oldest Kubernetes that is supported.
func TestOldestServer(t *testing.T) {
	rules := 0
	var compile func(path string, s *schema.Structural, root bool)
	compile = func(path string, s *schema.Structural, root bool) {
		if len(s.XValidations) > 0 {
			results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, oldest(), cel.NewExpressionsEnvLoader())
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			for i, result := range results {
				rules++
				if result.Error != nil || result.MessageExpressionError != nil {
					t.Errorf("%s, %q: %v %v", path, s.XValidations[i].Rule, result.Error, result.MessageExpressionError)
				}
			}
		}
		for name, property := range s.Properties {
			compile(path+"."+name, &property, false)
		}
		if s.Items != nil {
			compile(path+"[]", s.Items, false)
		}
	}
	for kind, k := range newServer(t) {
		compile(kind, k.structural, true)
	}
	if rules < 15 {
		t.Errorf("compiled only %d rules: this test looks in the wrong place", rules)
	}
}

// TestMoveFromMetalLB: a MetalLB object is ours once its apiVersion is changed.
func TestMoveFromMetalLB(t *testing.T) {
	accepted(t, "metallb", []string{
		"IPAddressPool", "L2Advertisement", "BGPAdvertisement", "BGPPeer", "BFDProfile", "Community",
	})
}

// TestOwnFields: what MetalLB does not have, and what only a condition can tell.
func TestOwnFields(t *testing.T) {
	accepted(t, "ours", []string{"IPAddressPool", "BGPPeer", "SpeakerStatus"})
}

func accepted(t *testing.T, folder string, kinds []string) {
	t.Helper()
	srv := newServer(t)
	seen := map[string]bool{}
	for _, f := range fixtures(t, folder) {
		seen[f.kind] = true
		name := f.file + " " + f.object["metadata"].(map[string]any)["name"].(string)
		for _, message := range srv.judge(t.Context(), f.kind, f.object) {
			t.Errorf("%s is refused: %s", name, message)
		}
		typed := newObject(f.kind)
		if typed == nil {
			t.Errorf("%s: no Go type for kind %s", name, f.kind)
			continue
		}
		if err := yaml.UnmarshalStrict(f.raw, typed, yaml.DisallowUnknownFields); err != nil {
			t.Errorf("%s does not decode strictly: %v", name, err)
			continue
		}
		// What Go writes back must still be legal: a client that reads and
		// updates an object must not be stopped by its own empty fields.
		data, err := yaml.Marshal(typed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var back map[string]any
		if err := utilyaml.Unmarshal(data, &back); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, message := range srv.judge(t.Context(), f.kind, back) {
			t.Errorf("%s is refused after a round trip through Go: %s", name, message)
		}
	}
	for _, kind := range kinds {
		if !seen[kind] {
			t.Errorf("testdata/%s has no %s", folder, kind)
		}
	}
}

// TestRefused: every refusal happens, and says what the fixture promises.
func TestRefused(t *testing.T) {
	srv := newServer(t)
	for _, f := range fixtures(t, "refused") {
		if f.want == "" {
			t.Errorf("%s: a document without a line \"# refused: …\":\n%s", f.file, f.raw)
			continue
		}
		messages := srv.judge(t.Context(), f.kind, f.object)
		if !strings.Contains(strings.Join(messages, "\n"), f.want) {
			t.Errorf("%s: want a refusal with %q, got %q for\n%s", f.file, f.want, messages, f.raw)
		}
	}
}

// newObject returns an empty object of a kind, nil if there is none.
func newObject(kind string) runtime.Object {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil
	}
	object, err := scheme.New(v1alpha1.GroupVersion().WithKind(kind))
	if err != nil {
		return nil
	}
	return object
}

// TestKindsHaveCRDs: a type that is registered is served, and the reverse.
func TestKindsHaveCRDs(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	srv := newServer(t)
	for kind, typ := range scheme.KnownTypes(v1alpha1.GroupVersion()) {
		if strings.HasSuffix(kind, "List") || !strings.HasSuffix(typ.PkgPath(), "v1alpha1") {
			continue
		}
		if srv[kind] == nil {
			t.Errorf("kind %s has no CRD", kind)
		}
		delete(srv, kind)
	}
	for kind := range srv {
		t.Errorf("CRD of kind %s has no Go type", kind)
	}
}
