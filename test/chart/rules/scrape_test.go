package rules

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// names is how Prometheus has checked the names of labels since its beginning.
const names = common.LegacyValidation

func model(name string) common.LabelName { return common.LabelName(name) }

// target is one process that Prometheus scrapes.
type target struct {
	component string // of ours
	labels    labels.Labels
	honors    bool // the labels of its series come before its own
}

// pod is one that a workload of the chart makes.
type pod struct {
	name, namespace string
	labels          map[string]string
	containers      []string
	ports           map[string]string // name to container
}

// pods are two of each workload.
func pods(t *testing.T, objects []object) (all []pod) {
	t.Helper()
	for _, o := range objects {
		if o.Kind != "Deployment" && o.Kind != "DaemonSet" {
			continue
		}
		template := spec[workload](t, o).Template
		for i := range 2 {
			p := pod{name: o.Metadata.Name + "-" + strconv.Itoa(i), namespace: o.Metadata.Namespace, labels: template.Metadata.Labels, ports: map[string]string{}}
			for _, c := range template.Spec.Containers {
				for _, port := range c.Ports {
					p.ports[port.Name] = c.Name
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// targets are what the monitors of the chart find among its pods, with the labels that
// Prometheus gives them.
func targets(t *testing.T, objects []object) (all []target) {
	t.Helper()
	there := pods(t, objects)
	for _, o := range objects {
		switch o.Kind {
		case "PodMonitor":
			m := spec[monitor](t, o)
			for _, e := range m.PodMetricsEndpoints {
				for _, p := range there {
					if selects(m.Selector.MatchLabels, p.labels) && slices.Contains(m.NamespaceSelector.MatchNames, p.namespace) {
						all = append(all, found(t, p, e, map[string]string{"job": o.Metadata.Namespace + "/" + o.Metadata.Name})...)
					}
				}
			}
		case "ServiceMonitor":
			m := spec[monitor](t, o)
			for _, e := range m.Endpoints {
				for _, s := range objects {
					if s.Kind != "Service" || !selects(m.Selector.MatchLabels, s.Metadata.Labels) || !slices.Contains(m.NamespaceSelector.MatchNames, s.Metadata.Namespace) {
						continue
					}
					for _, p := range there {
						if p.namespace == s.Metadata.Namespace && selects(spec[service](t, s).Selector, p.labels) {
							all = append(all, found(t, p, e, map[string]string{"job": s.Metadata.Name, "service": s.Metadata.Name})...)
						}
					}
				}
			}
		}
	}
	return all
}

// found is a pod's port as a target: first with the labels that the Prometheus operator
// gives it, then with what the monitor's own relabelling makes of them.
func found(t *testing.T, p pod, e endpoint, own map[string]string) []target {
	t.Helper()
	container, there := p.ports[e.Port]
	if !there {
		return nil
	}
	b := labels.NewBuilder(labels.FromMap(map[string]string{
		"namespace": p.namespace, "pod": p.name, "container": container, "endpoint": e.Port, "instance": p.name + ":" + e.Port,
		"__meta_kubernetes_namespace": p.namespace, "__meta_kubernetes_pod_name": p.name,
	}))
	for name, value := range own {
		b.Set(name, value)
	}
	for name, value := range p.labels {
		b.Set("__meta_kubernetes_pod_label_"+sanitized(name), value)
	}
	if !relabel.ProcessBuilder(b, e.relabelling(t)...) {
		return nil
	}
	b.Range(func(l labels.Label) {
		if len(l.Name) > 2 && l.Name[:2] == "__" {
			b.Del(l.Name)
		}
	})
	return []target{{component: p.labels["app.kubernetes.io/component"], labels: b.Labels(), honors: e.HonorLabels}}
}

// sanitized is the name of a label of Kubernetes as part of one of Prometheus.
func sanitized(name string) string {
	b := []byte(name)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	return string(b)
}

// scraped are the labels that a series of a target has once it is scraped.
func (o target) scraped(metric string, own map[string]string) labels.Labels {
	b := labels.NewBuilder(o.labels)
	b.Set(labels.MetricName, metric)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if there := o.labels.Get(name); there != "" && !o.honors {
			b.Set("exported_"+name, own[name])
			continue
		}
		b.Set(name, own[name]) // an empty one takes the target's away
	}
	return b.Labels()
}
