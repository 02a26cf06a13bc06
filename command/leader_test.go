package command

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"quayside.io/cluster/snapshot"
)

// apiStub is an API server with a few objects, whose statuses may be patched. What is
// created it takes, and never shows.
type apiStub struct {
	kinds map[string]snapshot.Kind // by resource

	mu      sync.Mutex
	objects map[string][]map[string]any // by resource
	asked   map[string]bool             // resources, watched or written
	version int                         // how many have been patched
}

// startAPI serves the objects of a text until the test ends, and returns a kubeconfig.
func startAPI(t *testing.T, text string) (s *apiStub, kubeconfig string) {
	t.Helper()
	s = &apiStub{kinds: map[string]snapshot.Kind{}, objects: map[string][]map[string]any{}, asked: map[string]bool{}}
	resources := map[string]string{} // by kind
	for kind := range snapshot.Kinds() {
		s.kinds[kind.Resource().Name], resources[kind.String()] = kind, kind.Resource().Name
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		kind, _ := o["kind"].(string)
		meta, _ := o["metadata"].(map[string]any)
		meta["resourceVersion"] = "5"
		s.objects[resources[kind]] = append(s.objects[resources[kind]], o)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, writeFile(t, t.TempDir(), "kubeconfig", fmt.Sprintf(
		"{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL))
}

func (s *apiStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	query, name := r.URL.Query(), path.Base(r.URL.Path)
	s.mu.Lock()
	for word := range strings.SplitSeq(r.URL.Path, "/") {
		s.asked[word] = true
	}
	s.mu.Unlock()
	kind, known := s.kinds[name]
	switch {
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case r.Method == http.MethodPatch:
		s.patch(w, r.URL.Path, body)
	case query.Get("sendInitialEvents") != "": // as a server does that cannot
		refuse(w, http.StatusUnprocessableEntity, "Invalid")
	case query.Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case known:
		s.list(w, name, kind)
	default:
		refuse(w, http.StatusNotFound, "NotFound")
	}
}

func (s *apiStub) list(w http.ResponseWriter, resource string, kind snapshot.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := s.objects[resource]
	if items == nil {
		items = []map[string]any{}
	}
	answer(w, http.StatusOK, map[string]any{
		"kind": kind.String() + "List", "apiVersion": kind.Resource().Group.String(), "metadata": map[string]any{"resourceVersion": "9"}, "items": items,
	})
}

// patch merges a status, and our annotations, into the object at a path.
func (s *apiStub) patch(w http.ResponseWriter, at string, body []byte) {
	var patch map[string]any
	words := strings.Split(at, "/") // …/resource/name/status
	if len(words) < 3 || json.Unmarshal(body, &patch) != nil {
		refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects[words[len(words)-3]] {
		if meta, _ := o["metadata"].(map[string]any); meta["name"] == words[len(words)-2] {
			merge(o, patch)
			s.version++
			meta["resourceVersion"] = fmt.Sprint(9 + s.version)
			answer(w, http.StatusOK, o)
			return
		}
	}
	refuse(w, http.StatusNotFound, "NotFound")
}

// merge is RFC 7386 for objects.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, object := value.(map[string]any)
		have, _ := into[key].(map[string]any)
		switch {
		case object && have == nil:
			into[key] = maps.Clone(inner)
		case object:
			merge(have, inner)
		case value == nil:
			delete(into, key)
		default:
			into[key] = value
		}
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
}

func answer(w http.ResponseWriter, code int, o map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // whoever went does not read it
}

// status is that of the first object of a resource, as JSON.
func (s *apiStub) status(resource string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(s.objects[resource][0]["status"])
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestLeaderElection: a controller alone does its work and takes no Lease; one that
// has others beside it takes it first.
func TestLeaderElection(t *testing.T) {
	for _, elects := range []bool{false, true} {
		s, kubeconfig := startAPI(t, `
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default, uid: "1"}
spec: {type: LoadBalancer, clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7], ipFamilies: [IPv4], ports: [{port: 80}]}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: [192.0.2.7/32]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site, namespace: default, uid: "2"}
spec: {ingressClassName: quayside, defaultBackend: {service: {name: web, port: {number: 80}}}}
`)
		out := start(t, "controller", "--kubeconfig="+kubeconfig, "--admin=127.0.0.1:0", "--publish-address=192.0.2.99", "--log-level=warn", fmt.Sprintf("--leader-elect=%v", elects))
		for resource, address := range map[string]string{"services": `"ip":"192.0.2.7"`, "ingresses": `"ip":"192.0.2.99"`} {
			for begin := time.Now(); !strings.Contains(s.status(resource), address); time.Sleep(2 * time.Millisecond) {
				if time.Since(begin) > time.Minute {
					t.Fatalf("--leader-elect=%v: after a minute the status of %s is %s\n%s", elects, resource, s.status(resource), out.String())
				}
			}
		}
		s.mu.Lock()
		asked := slices.Sorted(maps.Keys(s.asked))
		s.mu.Unlock()
		if slices.Contains(asked, "leases") != elects || !slices.Contains(asked, "services") {
			t.Errorf("--leader-elect=%v: asked for %q", elects, asked)
		}
	}
}
