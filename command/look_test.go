package command

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/command/explain"
)

// classlessYAML holds what is ours only with the flags of the day: a Service
// without a class, which no pool can serve, and an Ingress in namespace shop
// whose backend is missing.
const classlessYAML = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: LoadBalancer, clusterIP: 10.96.0.7, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: shop}
spec:
  ingressClassName: quayside
  defaultBackend: {service: {name: gone, port: {number: 80}}}
`

// Status and trace judge by the flags that controller and proxy run with: what
// those leave to others is no problem of ours.
func TestStatusJudgesByTheFlagsOfTheInstallation(t *testing.T) {
	files, err := cluster.NewFiles([]string{writeFile(t, t.TempDir(), "objects.yaml", classlessYAML)}, nil,
		cluster.FilesOptions{IngressClass: "quayside", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want []string // objects with problems
	}{
		{"", []string{"cart", "web"}},
		{"--default-load-balancer=false", []string{"cart"}},
		{"--watch-namespace=elsewhere --default-load-balancer=false", nil},
		{"--ingress-class=other", []string{"web"}},
		{"--watch-namespace-selector=kubernetes.io/metadata.name=shop", []string{"cart", "web"}},
		{"--watch-namespace-selector=kubernetes.io/metadata.name!=shop", []string{"web"}},
		{"--watch-namespace-selector= --watch-namespace=shop", []string{"cart", "web"}},
	} {
		var f clusterFlags
		flags := pflag.NewFlagSet("status", pflag.ContinueOnError)
		f.add(flags)
		if err := flags.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		routes, err := f.routes()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range compileInputs(files.Snapshot(), f, routes, nil).Problems {
			got = append(got, p.Object.Name)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("status %s: problems of %q, want %q", c.args, got, c.want)
		}
	}
}

// The controller knows its flags. Who gives some asks how it would be with them.
func TestWhoJudgesTheCluster(t *testing.T) {
	for args, here := range map[string]bool{
		"": false, "--namespace=edge": false, "-o json": false,
		"--local": true, "--ingress-class=other": true, "--default-load-balancer=false": true, "--external-ips": true,
	} {
		var f lookFlags
		flags := pflag.NewFlagSet("status", pflag.ContinueOnError)
		f.add(flags, "")
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if got := f.judges(flags); got != here {
			t.Errorf("status %s: judged here %v, want %v", args, got, here)
		}
	}
}

// A request to the address of the proxy goes through its routes, whatever the release
// calls its Service.
func TestTraceKnowsTheProxyByItsLabels(t *testing.T) {
	var services []string
	for _, o := range rendered(t, "fullnameOverride: border") {
		if o.GetKind() == "Service" && strings.HasSuffix(o.GetName(), "-proxy") {
			o.Object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}}
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			services = append(services, string(text))
		}
	}
	if len(services) != 1 {
		t.Fatalf("%d Services of the proxy", len(services))
	}
	// The catch-all's status names no address yet.
	files, err := cluster.NewFiles([]string{writeFile(t, t.TempDir(), "objects.yaml", classlessYAML+"---\n"+services[0])}, nil,
		cluster.FilesOptions{IngressClass: "quayside", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var f clusterFlags
	flags := pflag.NewFlagSet("trace", pflag.ContinueOnError)
	f.add(flags)
	if err := flags.Parse([]string{"--namespace=quayside-system"}); err != nil {
		t.Fatal(err)
	}
	routes, err := f.routes()
	if err != nil {
		t.Fatal(err)
	}
	target, err := explain.ParseTarget("http://192.0.2.1/")
	if err != nil {
		t.Fatal(err)
	}
	path := explain.Trace(compileInputs(files.Snapshot(), f, routes, nil), target)
	if !slices.ContainsFunc(path.Links, func(l explain.Link) bool { return l.Name == "route" }) {
		t.Errorf("the trace does not go through the routes: %+v", path.Links)
	}
}
