package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/networkpolicy"
	"quayside.io/cluster/printable"
	"quayside.io/proxy/route"
)

// Object is one object of ours, as it is to be applied.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   Meta   `json:"metadata"`
	Spec       any    `json:"spec"`

	// Notes are sentences about what is different here, or left out.
	Notes []string `json:"-"`
}

// String returns the kind and the full name.
func (o Object) String() string { return o.Kind + " " + o.Metadata.fullName() }

// Meta is the part of an object's metadata that its owner wrote.
type Meta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (m Meta) fullName() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// Result is what comes of everything that was read.
type Result struct {
	Objects []Object
	// Notes concern what no object came of.
	Notes []string
}

// source is an object as it was found.
type source struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        Meta            `json:"metadata"`
	Spec            json.RawMessage `json:"spec"`
	Status          json.RawMessage `json:"status"`
	Data            json.RawMessage `json:"data"`
	Items           json.RawMessage `json:"items"`

	part string // of the object, if it becomes many
}

func (s *source) String() string {
	return fmt.Sprintf("%s %s %s%s", s.APIVersion, s.Kind, s.Metadata.fullName(), s.part)
}

// What a Migration may be about alone.
const (
	Addresses = "addresses" // what was MetalLB's
	Ingresses = "ingresses" // what was ingress-nginx's
)

// Migration collects files and objects. Its zero value is ready.
type Migration struct {
	// Only is Addresses or Ingresses: objects of the other are not looked at.
	// Empty: both are.
	Only string
	// Classes are the classes of Ingresses that are taken over, and what each becomes; nil:
	// "nginx" becomes ours. Others stay, as a class may be of an address that not everybody
	// reaches.
	Classes map[string]string

	// ProxyNamespace is where our proxies run; empty: DefaultProxyNamespace.
	ProxyNamespace string

	result  Result
	origins map[string]string // "Kind namespace/name" of what came out: of what
	passed  map[string]int    // kinds that are nobody's here

	ingresses []ingress
	plain     bool // ingress-nginx redirects nobody to https unasked

	policies   []policy // and what says which pods they select
	namespaces map[string]map[string]string
	edges      []networkpolicy.Pod

	issuers        map[issuer][]string // classes by which they have challenges answered
	unknownIssuers int                 // Ingresses with another

	streams  []stream // and the Services to which they may lead
	services map[target]corev1.ServiceSpec

	sharers []sharer
}

// Read takes every document of a file of YAML or JSON; name is that of the file.
// What cannot be read is an error that names the document; the others are taken.
func (m *Migration) Read(name string, data []byte) error {
	var all []error
	stream := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		text, err := stream.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(all...)
		}
		if err == nil {
			text, err = yaml.YAMLToJSON(text)
		}
		if err == nil && string(text) != "null" {
			err = m.object(text, metav1.TypeMeta{})
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s: document %d: %w", name, n, err))
		}
	}
}

// object takes one object, or each of a List. An API server leaves out the kind
// of what stands in a list of that kind.
func (m *Migration) object(text []byte, kind metav1.TypeMeta) error {
	s := source{TypeMeta: kind}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.Kind == "" || s.APIVersion == "" {
		return errors.New("apiVersion and kind are required")
	}
	if of, list := strings.CutSuffix(s.Kind, "List"); list && s.Metadata.Name == "" {
		var items []json.RawMessage
		if len(s.Items) > 0 {
			if err := json.Unmarshal(s.Items, &items); err != nil {
				return fmt.Errorf("%s: items: %w", s.Kind, err)
			}
		}
		var all []error
		for _, item := range items {
			all = append(all, m.object(item, metav1.TypeMeta{APIVersion: s.APIVersion, Kind: of}))
		}
		return errors.Join(all...)
	}
	if s.Metadata.Name == "" {
		return fmt.Errorf("%s: metadata.name is required", s.Kind)
	}
	group, _, _ := strings.Cut(s.APIVersion, "/")
	var take func(*source) error
	half := Addresses
	switch {
	case group == "metallb.io":
		take = m.metallb
	case group == "frrk8s.metallb.io":
		take = m.frrk8s
	case s.TypeMeta == metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}:
		take = m.configMap
		if streams, notes := streamsOf(&s); len(streams) > 0 {
			take, half = func(*source) error { m.stream(streams, notes); return nil }, Ingresses
		} else if hasOptions(&s) {
			take, half = m.takeOptions, Ingresses
		}
	case s.TypeMeta == metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}:
		take, half = m.service, m.Only // both halves have a use for it
	case s.TypeMeta == metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}:
		take, half = m.takeNamespace, Ingresses
	case s.TypeMeta == metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}:
		take, half = m.takePolicy, Ingresses
	case group == "cert-manager.io" && (s.Kind == "Issuer" || s.Kind == "ClusterIssuer"):
		take, half = m.takeIssuer, Ingresses
	case s.Kind == "Ingress" && slices.Contains(ingressVersions(), s.APIVersion):
		take, half = m.takeIngress, Ingresses
	default:
		m.pass(&s)
		return nil
	}
	if m.Only != "" && m.Only != half {
		return nil
	}
	err := take(&s)
	if err != nil {
		return fmt.Errorf("%s: %w", &s, err)
	}
	return nil
}

// pass counts an object that stays as it is, or is nobody's here.
func (m *Migration) pass(s *source) {
	if m.passed == nil {
		m.passed = map[string]int{}
	}
	m.passed[s.APIVersion+" "+s.Kind]++
}

// add takes an object of ours. Two sources may come to the same: ours are
// cluster-scoped, and MetalLB's were not.
func (m *Migration) add(from *source, o Object) {
	key := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
	if m.origins == nil {
		m.origins = map[string]string{}
	}
	if other, twice := m.origins[key]; twice {
		m.note("%s is left out: %s comes to the same %s %s", from, other, o.Kind, o.Metadata.Name)
		return
	}
	m.origins[key] = from.String()
	m.result.Objects = append(m.result.Objects, o)
}

func (m *Migration) note(format string, args ...any) {
	m.result.Notes = append(m.result.Notes, fmt.Sprintf(format, args...))
}

// ours begins an object of ours with what its owner wrote of the metadata.
func ours(kind string, meta Meta, spec any) Object {
	kept, notes := own(meta)
	kept.Namespace = ""
	return Object{APIVersion: v1alpha1.GroupVersion().String(), Kind: kind, Spec: spec, Metadata: kept, Notes: notes}
}

// own is the metadata that a person wrote. A mark of who manages the original is
// left out: a tool that finds it on what it never applied removes that, or fights
// for it.
func own(meta Meta) (kept Meta, notes []string) {
	kept = Meta{Name: meta.Name, Namespace: meta.Namespace, Labels: maps.Clone(meta.Labels), Annotations: maps.Clone(meta.Annotations)}
	delete(kept.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	delete(kept.Annotations, route.ProblemsAnnotation) // what it was like here
	var marks []string
	for what, marked := range map[string]map[string]string{"label": kept.Labels, "annotation": kept.Annotations} {
		maps.DeleteFunc(marked, func(key, _ string) bool {
			if isMark(key) {
				marks = append(marks, what+" "+key)
			}
			return isMark(key)
		})
	}
	if len(marks) > 0 {
		slices.Sort(marks)
		notes = append(notes, "left out, since it says who manages the original: "+strings.Join(marks, ", "))
	}
	return kept, notes
}

// isMark reports whether a label or annotation is that of a tool that manages
// objects.
func isMark(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return key == "app.kubernetes.io/managed-by" || slices.Contains([]string{
		"argocd.argoproj.io", "meta.helm.sh", "helm.sh", "helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io",
	}, prefix)
}

// Result returns what came of all, in the order of Kind and name, so that the
// same input prints the same text.
func (m *Migration) Result() Result {
	m.finishIngresses()
	m.finishPolicies()
	objects, notes := m.balanced()
	r := Result{Objects: slices.Concat(m.result.Objects, objects), Notes: slices.Concat(m.result.Notes, notes)}
	slices.SortStableFunc(r.Objects, func(a, b Object) int {
		return strings.Compare(a.Kind+"/"+a.Metadata.Namespace+"/"+a.Metadata.Name, b.Kind+"/"+b.Metadata.Namespace+"/"+b.Metadata.Name)
	})
	has := func(kind string) bool {
		return slices.ContainsFunc(r.Objects, func(o Object) bool { return o.Kind == kind })
	}
	if has("IPAddressPool") && !has("L2Advertisement") && !has("BGPAdvertisement") {
		r.Notes = append(r.Notes, unconfined)
	}
	if has("Ingress") {
		r.Notes = append(r.Notes, otherWays)
	}
	r.Notes = slices.Concat(r.Notes, m.otherIssuers(), m.unadmitted())
	for _, kind := range slices.Sorted(maps.Keys(m.passed)) {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %s left alone", m.passed[kind], kind))
	}
	return r
}

// WriteYAML writes documents that `kubectl apply -f -` takes, with the notes as
// comments above what they are about. An object that cannot be written is an
// error; the others are written.
func (r Result) WriteYAML(w io.Writer) error {
	var b bytes.Buffer
	var all []error
	comment(&b, r.Notes)
	for _, o := range r.Objects {
		text, err := printable.YAML(o)
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", o, err))
			continue
		}
		b.WriteString("---\n")
		comment(&b, o.Notes)
		b.Write(text)
	}
	_, err := w.Write(b.Bytes())
	return errors.Join(append(all, err)...)
}

// comment keeps each note to its line: what it quotes was written by others, and
// none of that may become an object.
func comment(b *bytes.Buffer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(b, "# %s\n", printable.Line(n))
	}
}

// WriteJSON writes a List. The notes have no place in it.
func (r Result) WriteJSON(w io.Writer) error {
	text, err := printable.JSON(struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Items      []Object `json:"items"`
	}{"v1", "List", append([]Object{}, r.Objects...)})
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// AllNotes are those about objects, too, each with the object's name.
func (r Result) AllNotes() []string {
	all := slices.Clone(r.Notes)
	for _, o := range r.Objects {
		for _, n := range o.Notes {
			all = append(all, fmt.Sprintf("%s: %s", o, n))
		}
	}
	return all
}
