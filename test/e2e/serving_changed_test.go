package e2e

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// A proxy that has served other Ingresses, Services, Secrets and options under the same names
// serves what it has now as one does that is started with it.
func TestServesChangesAsFromTheStart(t *testing.T) {
	beside(t)
	for seed := range drawn(2, 60) {
		was := drawIngressWorld(t, throw(seed, 11))
		is := drawIngressWorld(t, throw(seed, 12))
		was.flags = is.flags       // which a process keeps
		is.awaited("last.example") // which no other world has
		fresh := is.byUs()
		files, plain, secure := was.start()
		before := was.newServed("before", plain, secure)
		was.await(before)
		for _, r := range was.requests {
			before.ask(t, r)
		}
		is.follow(was, files)
		after := is.newServed("changed", plain, secure)
		await(t, 30*time.Second, "proxy that serves the last change", func() bool {
			return alike(fresh.ask(t, is.requests[0]), after.ask(t, is.requests[0])) // others may answer for that host before
		})
		differs, same := is.remembered(), 0
		for _, r := range is.requests {
			want, got := fresh.ask(t, r), after.ask(t, r)
			if differs[domainOf(r.host)] {
				continue
			}
			if alike(want, got) {
				same++
				continue
			}
			differs[domainOf(r.host)] = true
			t.Errorf("world %d: %s\nfresh:   %q\nchanged: %q\n%s", seed, r, except(want, got), except(got, want), is.ingressesOf(r))
		}
		if same < len(is.requests)/2 {
			t.Errorf("world %d: %d of %d answers are compared", seed, same, len(is.requests))
		}
		is.close()
		was.close()
	}
}

// follow has files hold what the world has instead of what another had, object by object, and the
// last of it at the end.
func (w *ingressWorld) follow(was *ingressWorld, files *cluster.Files) {
	w.t.Helper()
	left := map[snapshot.Ref]bool{}
	for _, o := range w.objects {
		left[snapshot.RefOf(o)] = true
	}
	steps := []func(){}
	for _, o := range w.objects[:len(w.objects)-1] {
		steps = append(steps, func() { files.Put(o) })
	}
	for _, o := range was.objects {
		if kind, _ := snapshot.KindOf(o); !left[snapshot.RefOf(o)] {
			steps = append(steps, func() { files.Delete(kind, snapshot.KeyOf(o)) })
		}
	}
	w.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		step()
	}
	files.Put(w.objects[len(w.objects)-1])
}

// remembered are the domains of which a proxy rightly remembers what went before: how many
// requests a client had, and which pods have failed.
func (w *ingressWorld) remembered() map[string]bool {
	domains := map[string]bool{}
	for _, o := range w.objects {
		if i, is := o.(*networkingv1.Ingress); is && len(i.Spec.Rules) > 0 {
			for _, limit := range []string{"limit-rps", "limit-rpm"} {
				if i.Annotations["nginx.ingress.kubernetes.io/"+limit] != "" {
					domains[domainOf(i.Spec.Rules[0].Host)] = true
				}
			}
		}
	}
	for _, r := range w.requests {
		if r.fails {
			domains[domainOf(r.host)] = true
		}
	}
	return domains
}
