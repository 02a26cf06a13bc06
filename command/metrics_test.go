package command

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/controller"
	"quayside.io/proxy"
	"quayside.io/speaker"
)

var writePage = flag.Bool("write-page", false, "write docs/metrics.md from what the components register")

// describing is a registry that asks what it is given only for what it would export.
type describing struct{ rows map[string]string } // by metric

// Register implements prometheus.Registerer.
func (d describing) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 1000)
	c.Describe(ch)
	close(ch)
	form := regexp.MustCompile(`fqName: "(.*?)", help: (".*?"), constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)
	constant := regexp.MustCompile(`(\w+)="`)
	for desc := range ch {
		found := form.FindStringSubmatch(desc.String())
		if found == nil {
			return fmt.Errorf("a description of another form: %s", desc)
		}
		var labels []string
		for _, label := range constant.FindAllStringSubmatch(found[3], -1) {
			labels = append(labels, "`"+label[1]+"`")
		}
		for label := range strings.FieldsFuncSeq(found[4], func(c rune) bool { return c == ',' }) {
			labels = append(labels, "`"+label+"`")
		}
		var help string
		if _, err := fmt.Sscanf(found[2], "%q", &help); err != nil {
			return err
		}
		if strings.HasPrefix(found[1], "quayside_") || strings.HasPrefix(found[1], asNginx) {
			d.rows[found[1]] = fmt.Sprintf("| `%s` | %s | %s |", found[1], strings.Join(labels, ", "), strings.ReplaceAll(help, "|", `\|`))
		}
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (d describing) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := d.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (d describing) Unregister(prometheus.Collector) bool { return false }

// TestPageOfMetrics keeps docs/metrics.md what the components register; `make generate`
// writes it.
func TestPageOfMetrics(t *testing.T) {
	const path = "../docs/metrics.md"
	want := pageOfMetrics(t)
	if *writePage {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page is not what is registered; run make generate (-registered +page):\n%s", diff)
	}
}

func pageOfMetrics(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n<!-- Made by \"make generate\" from what the components register. -->\n\n" +
		"Every process serves these at `/metrics` of its `--admin` address, in the form of Prometheus, beside those of the Go runtime and of the process. " +
		"Labels are bounded by what is configured, never by traffic. One that several kinds of process have stands with the first. The chart brings alerts, dashboards and monitors: see `metrics` in " +
		"[values.yaml](../charts/quayside/values.yaml), and [the security model](security-model.md) for who may read.\n")
	known := map[string]bool{}
	parts := registered(t)
	nginx := part{name: "Under the names of ingress-nginx", note: nginxNote, describing: describing{map[string]string{}}}
	for _, part := range parts {
		for name, row := range part.rows {
			if strings.HasPrefix(name, asNginx) {
				nginx.rows[name] = row
				delete(part.rows, name)
			}
		}
	}
	for _, part := range append(parts, nginx) {
		fmt.Fprintf(&b, "\n## %s\n\n%s| metric | labels | what it says |\n|---|---|---|\n", part.name, part.note)
		var names []string
		for name := range part.rows {
			if !known[name] {
				names = append(names, name)
			}
			known[name] = true
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintln(&b, part.rows[name])
		}
	}
	return b.String()
}

type part struct {
	name string
	note string // a paragraph, or nothing
	describing
}

// asNginx begins the names of ingress-nginx.
const asNginx = "nginx_ingress_controller_"

// nginxNote is what its metrics are when they are ours.
const nginxNote = "With `metrics.ingressNginx` of the chart (`--nginx-metrics`) the proxies show these as well, for dashboards and alerts that are there. " +
	"What differs: a wildcard host has its series, under `host=\"*.example.com\"`, and rules without host have theirs under `host=\"_\"`; methods that are none of HTTP's own are `other`; " +
	"`response_size` is that of the body; the limits of sizes are 10, 100 and so on to 10,000,000 bytes, where ingress-nginx ends at 100; " +
	"where several endpoints were asked, the times are those of the last. `controller_class` is `quayside.io/ingress`.\n\n" +
	"They are one series for each path, method, status and limit, so a proxy with thousands of Ingresses has hundreds of thousands of them: take what you need of them with `metricRelabelings`, " +
	"and turn this off once your dashboards ask for the others.\n\n"

// registered is what each kind of process exports, those of all first.
func registered(t *testing.T) []part {
	t.Helper()
	e := &env{stdout: io.Discard, stderr: io.Discard, logLevel: "error", logFormat: "text"}
	p, err := e.process()
	if err != nil {
		t.Fatal(err)
	}
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	parts := []part{{name: "All processes"}, {name: "Controller"}, {name: "Speaker"}, {name: "Proxy"}}
	for i := range parts {
		parts[i].describing = describing{map[string]string{}}
	}
	parts[0].MustRegister(buildInfo(e.version))
	kubeconfig := writeFile(t, t.TempDir(), "config", "apiVersion: v1\nkind: Config\ncurrent-context: x\n"+
		"contexts: [{name: x, context: {cluster: x}}]\nclusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}]\n")
	if _, err := cluster.NewAPI(cluster.APIOptions{Kubeconfig: cluster.Kubeconfig{File: kubeconfig}, Component: "controller", Log: p.log, Registerer: parts[0], Kinds: controller.Kinds(),
		LastKnown: cluster.LastKnown{File: filepath.Join(t.TempDir(), "cluster"), MaxAge: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.New(controller.Options{Source: files.Source, Writer: files, Log: p.log, Registerer: parts[1]}); err != nil {
		t.Fatal(err)
	}
	if _, err := speaker.New(speaker.Options{
		Source: files.Source, Writer: files, NodeName: "n1", Log: p.log, Registerer: parts[2], Profile: "default",
		MembersBind: "127.0.0.1:7946", MembersKeyFile: writeFile(t, t.TempDir(), "key", "sixteen bytes and more"),
	}); err != nil {
		t.Fatal(err)
	}
	var f proxyFlags
	flags := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	f.add(flags, detailFull)
	if err := flags.Parse([]string{"--modsecurity", "--access-log=json", "--nginx-metrics", "--maxmind-edition-ids=GeoLite2-Country"}); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(files.Source, p, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.Registerer = parts[3]
	if _, err := proxy.New(o); err != nil {
		t.Fatal(err)
	}
	return parts
}
