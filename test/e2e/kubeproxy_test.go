package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"quayside.io/test/lab"
)

// The kube-proxy of one node says nothing when its speaker starts. Until it
// does, new addresses and those of a dead node go to the others; the last node
// alive takes all the same. Once kube-proxy answers, that is over.
func TestANodeWithoutRulesIsChosenLast(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	mute, dead, other := e.Node(1), e.Node(2), e.Node(3)
	for i := range 3 {
		e.Pod(1+i, fmt.Sprintf("web-%d", 1+i), lab.Labels{"app": "web"})
	}
	laptop := e.Client("laptop")
	ask := func(names []string) map[string]string {
		owners := map[string]string{}
		for _, name := range names {
			owners[name] = e.owner(laptop, e.serviceAddress(name)).Name()
		}
		return owners
	}
	var names []string
	more := func(n int) {
		for range n {
			names = append(names, fmt.Sprintf("web%d", len(names)))
			e.Apply(strings.Replace(loadBalancer("Cluster"), "name: web", "name: "+names[len(names)-1], 1))
		}
	}
	more(3)
	ask(names)

	speaker := e.Quayside().Speaker(mute)
	t.Cleanup(func() { mute.KubeProxy().Signal(syscall.SIGCONT) })
	mute.KubeProxy().Signal(syscall.SIGSTOP)
	speaker.Stop()
	speaker.Start()
	more(3)
	for name, owner := range ask(names) {
		if owner == mute.Name() {
			t.Errorf("%s is announced by %s, which has no rules", name, owner)
		}
	}
	dead.Fail()
	e.Eventually(settle, func() error {
		for name, owner := range ask(names) {
			if owner != other.Name() {
				return fmt.Errorf("%s is announced by %s, not by %s", name, owner, other.Name())
			}
		}
		return nil
	})
	e.Eventually(settle, func() error {
		problems, err := json.Marshal(speaker.State()["problems"])
		if err != nil || !strings.Contains(string(problems), "KubeProxyBehind") || !strings.Contains(string(problems), ":10249") {
			return fmt.Errorf("%s tells of no problem with its kube-proxy: %s, %v", mute.Name(), problems, err)
		}
		return nil
	})
	other.Fail()
	e.Eventually(settle, func() error {
		for name, owner := range ask(names) {
			if owner != mute.Name() {
				return fmt.Errorf("%s is announced by %s, not by %s, the only one left", name, owner, mute.Name())
			}
		}
		return nil
	})
	mute.KubeProxy().Signal(syscall.SIGCONT)
	e.Eventually(settle, func() error {
		problems, err := json.Marshal(speaker.State()["problems"])
		if err != nil || strings.Contains(string(problems), "KubeProxyBehind") {
			return fmt.Errorf("still: %s, %v", problems, err)
		}
		return nil
	})
	dead.Heal()
	other.Heal()
}
