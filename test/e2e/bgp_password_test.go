package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// A speaker's token opens the Secrets that BGPPeers name, and no other: not the gossip key
// beside them. The right to read one is on its way for as long as somebody else's Role has
// the name of ours: then a speaker that starts is not ready, and says why, and once it has
// the right, the session comes up. A peer that names another Secret keeps its session.
func TestSpeakersReadThePasswordsThatPeersName(t *testing.T) {
	beside(t)
	e := three(t)
	const grant = "quayside-speaker-references"
	accountMayRead(t, e.Cluster, "quayside-speaker", "without any BGPPeer")
	roles := e.Kube().RbacV1().Roles(lab.SystemNamespace)
	if _, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: grant}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Apply(bgpSecret("tor", "hush") + "---" + bgpSecret("spare", "hush") + "---" + bgpSecret("unnamed", "hush"))
	router := e.bgpRouter("tor", 65001, "password hush")
	e.Apply(bgpPool + bgpPeer(router, "tor", 65001, ", passwordSecret: {name: tor}"))
	peer := func(more string) {
		if err := e.TryApply(bgpPeer(router, "tor", 65001, more)); err != nil {
			t.Fatal(err)
		}
	}
	speaker := e.Quayside().Speaker(e.Node(1))
	speaker.Crash()
	e.Eventually(settle, func() error {
		resp, err := speaker.Try(speaker.AdminURL("/readyz"))
		if err == nil && (resp.Status != 503 || !strings.Contains(string(resp.Body), "Secret quayside-system/tor with the password could not be read")) {
			err = fmt.Errorf("readiness of a speaker without its password: %d %s", resp.Status, resp.Body)
		}
		return err
	})
	e.Eventually(settle, func() error {
		if report := string(e.Quayside().Leader().Admin("/state")); !strings.Contains(report, "the speakers cannot be given Secret quayside-system/tor with the password: role quayside-system/"+grant+" is not ours") {
			return fmt.Errorf("the leader does not tell that the Secret is not granted: %s", report)
		}
		return nil
	})

	if err := roles.Delete(t.Context(), grant, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	peer(", holdTime: 30s, passwordSecret: {name: tor}") // so that nobody waits a minute
	e.sessionsUp(router)
	speaker.AwaitReady()
	accountMayRead(t, e.Cluster, "quayside-speaker", "with a BGPPeer", lab.SystemNamespace+"/tor")
	before := e.neighbours(router)

	peer(", holdTime: 30s, passwordSecret: {name: spare}")
	accountMayRead(t, e.Cluster, "quayside-speaker", "with another Secret in the BGPPeer", lab.SystemNamespace+"/spare")
	for ip, n := range e.neighbours(router) {
		if n.State != "Established" || n.Dropped != before[ip].Dropped {
			t.Errorf("the session of %s when its Secret got another name: %+v, was %+v", ip, n, before[ip])
		}
	}
}
