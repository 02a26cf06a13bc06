package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// Workload is the DaemonSet or Deployment that runs processes of one kind.
type Workload struct {
	// Kind is as in an object: "DaemonSet" or "Deployment".
	Kind, Namespace, Name string
}

// ParseWorkload reads KIND/NAMESPACE/NAME; the empty text is the zero Workload.
func ParseWorkload(text string) (Workload, error) {
	if text == "" {
		return Workload{}, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" || parts[0] != "DaemonSet" && parts[0] != "Deployment" {
		return Workload{}, fmt.Errorf("%q: want DaemonSet/NAMESPACE/NAME or Deployment/NAMESPACE/NAME", text)
	}
	return Workload{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}

// workload asks how many processes of this one's kind there are to be, and how many are
// ready. What the server has in memory is good enough.
func (a *API) workload(ctx context.Context) (wanted, ready int, err error) {
	w := a.opts.Workload
	bounded, cancel := deadline(ctx)
	defer cancel()
	text, err := a.clients.byGroup[appsv1.SchemeGroupVersion].Get().Namespace(w.Namespace).
		Resource(strings.ToLower(w.Kind)+"s").Name(w.Name).Param("resourceVersion", "0").
		SetHeader("Accept", jsonType).MaxRetries(0).Do(bounded).Raw()
	if err != nil {
		return 0, 0, err
	}
	var answer struct {
		Status struct {
			DesiredNumberScheduled, NumberReady int // of a DaemonSet
			Replicas, ReadyReplicas             int // of a Deployment
		}
	}
	_ = json.Unmarshal(text, &answer) // of what cannot be read nothing is known
	s := answer.Status
	return s.DesiredNumberScheduled + s.Replicas, s.NumberReady + s.ReadyReplicas, nil
}
