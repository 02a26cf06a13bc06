package migrate

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"quayside.io/cluster/printable"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/geoip"
	"quayside.io/proxy/route"
)

// MaxValues bounds a file of values, in bytes.
const MaxValues = 1 << 20

// The charts whose values ReadChart knows.
const (
	IngressNginxChart = "ingress-nginx"
	MetalLBChart      = "metallb"
)

// ChartValues are values of our chart, made of those of another.
type ChartValues struct {
	Values map[string]any
	// Notes are sentences about what has no equivalent, or is said elsewhere.
	Notes []string

	process []string // what is about the other's own processes
	rules   map[string]chartRule
}

// ReadChart reads a file of values of a chart, as `helm get values` prints it, too. What our
// chart has no value for comes to a note.
func ReadChart(chart string, text []byte) (*ChartValues, error) {
	known := map[string]func() map[string]chartRule{IngressNginxChart: ingressNginxRules, MetalLBChart: metallbRules}
	rules := known[chart]
	if rules == nil {
		return nil, fmt.Errorf("the values of chart %q are not known, only those of %s", chart, strings.Join(slices.Sorted(maps.Keys(known)), " and "))
	}
	if len(text) > MaxValues {
		return nil, fmt.Errorf("the values have %d bytes, more than %d", len(text), MaxValues)
	}
	text = bytes.TrimPrefix(text, []byte("USER-SUPPLIED VALUES:\n"))
	var theirs map[string]any
	if err := yaml.Unmarshal(text, &theirs); err != nil {
		return nil, fmt.Errorf("values of a chart: %w", err)
	}
	c := &ChartValues{Values: map[string]any{}, rules: rules()}
	c.read("", theirs)
	c.judgeConfig()
	if len(c.process) > 0 {
		c.note("of its own processes, and left out: %s", strings.Join(c.process, ", "))
	}
	return c, nil
}

// read takes what stands below a path.
func (c *ChartValues) read(path string, values map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at, value := strings.TrimPrefix(path+"."+name, "."), values[name]
		inner, isMap := value.(map[string]any)
		to, known := c.rules[at]
		switch {
		case isNothing(value):
		case known:
			to(c, at, value)
		case isMap:
			c.read(at, inner)
		default:
			c.note("%s has no equivalent", printable.Cut(at, maxQuoted))
		}
	}
}

// isNothing reports whether a value is one that charts have where nobody has given any: files that
// began as a copy of a chart's own are full of them.
func isNothing(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return value == nil || value == ""
}

func (c *ChartValues) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// set puts a value at a path of ours.
func (c *ChartValues) set(path string, value any) {
	in := c.Values
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := in[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			in[name] = inner
		}
		in = inner
	}
	in[names[len(names)-1]] = value
}

// get is the value at a path of ours; nil: there is none.
func (c *ChartValues) get(path string) any {
	var at any = c.Values
	for name := range strings.SplitSeq(path, ".") {
		inner, _ := at.(map[string]any)
		at = inner[name]
	}
	return at
}

// keys are what stands below a value of theirs; false: it is no map, which is noted.
func (c *ChartValues) keys(at string, value any) (theirs map[string]any, ok bool) {
	if theirs, ok = value.(map[string]any); !ok {
		c.note("%s is no map of keys", at)
	}
	return theirs, ok
}

// judgeConfig asks the proxy's compiler what it makes of proxy.config.
func (c *ChartValues) judgeConfig() {
	proxy, _ := c.Values["proxy"].(map[string]any)
	config, _ := proxy["config"].(map[string]string)
	if _, named := proxy["geoip"]; !named && config["use-geoip2"] == "true" {
		c.editions([]string{"GeoLite2-City", "GeoLite2-ASN"}) // those of ingress-nginx where none are named
	}
	for _, p := range problemsOf(config) {
		if !strings.Contains(p.Message, "does not exist") {
			c.note("proxy.config: %s", p.Message)
		}
	}
}

// problemsOf are what the proxy says of the keys of its ConfigMap.
func problemsOf(config map[string]string) []snapshot.Problem {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "config"}, Data: config}
	return route.Compile(snapshot.Of(cm), nil, route.Options{ConfigMap: snapshot.KeyOf(cm), ModSecurity: true, Places: geoip.Every()}).Problems
}

// WriteYAML writes a file of values, with the notes as comments before them.
func (c *ChartValues) WriteYAML(w io.Writer) error {
	var out bytes.Buffer
	for _, n := range c.Notes {
		fmt.Fprintf(&out, "# %s\n", printable.Line(n))
	}
	text, err := yaml.Marshal(c.Values)
	if err != nil {
		return err
	}
	out.Write(text)
	_, err = w.Write(out.Bytes())
	return err
}
