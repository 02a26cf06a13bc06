package proxy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/controller"
	"quayside.io/proxy"
)

// stickyReplica is a proxy that serves sticky.test from four pods.
func stickyReplica(t *testing.T, key snapshot.Key, pods []string) (*cluster.Files, *proxy.Proxy) {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) { o.Tickets = key })
	svc := service("web", corev1.ServicePort{Port: 80})
	svc.UID = "c0ffee00-1111-2222-3333-444455556666"
	ing := ingress("web", "sticky.test", "/", "web", number)
	ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/affinity": "cookie"}
	files.Put(svc, ing)
	for i, addr := range pods {
		s := slice("web", "", addr)
		s.Name = fmt.Sprint("web-", i)
		files.Put(s)
	}
	eventually(t, "all pods are there", func() bool {
		st, _ := p.State().(proxy.State)
		return len(st.Backends) == 1 && len(st.Backends[0].Endpoints) == len(pods)
	})
	return files, p
}

func stickyPods(t *testing.T) (pods []string) {
	for i := range 4 {
		pods = append(pods, echo(t, fmt.Sprint("pod-", i)))
	}
	return pods
}

// visitSticky asks with a cookie, and returns the pod that answered and the cookie that
// the client has then.
func visitSticky(t *testing.T, p *proxy.Proxy, cookie string) (pod, kept string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+bound(p, false)+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "sticky.test"
	if cookie != "" {
		req.AddCookie(&http.Cookie{Name: "INGRESSCOOKIE", Value: cookie})
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	for _, c := range resp.Cookies() {
		cookie = c.Value
	}
	return string(body[:len("pod-0")]), cookie
}

// Who may read a Service makes no cookie of it: what is known of one is no secret.
func TestCookiesAreNotMadeOfWhatIsKnown(t *testing.T) {
	_, p := stickyReplica(t, snapshot.Key{}, stickyPods(t))
	const uid, port = "c0ffee00-1111-2222-3333-444455556666", 80
	for _, identity := range []string{fmt.Sprintf("%s\x00%d", uid, port), fmt.Sprintf("default/web\x00%d", port), uid} {
		secret := sha256.Sum256([]byte("quayside balance\x00" + identity))
		key := []byte{1, 2, 3, 4, 5, 6, 7, 8}
		seal := sha256.Sum256(append(secret[:], key...))
		forged := hex.EncodeToString(append(key, seal[:8]...))
		if _, kept := visitSticky(t, p, forged); kept == forged {
			t.Errorf("a cookie was taken that was made of %q", identity)
		}
	}
	if pod, cookie := visitSticky(t, p, ""); cookie == "" {
		t.Error("no cookie at all")
	} else if again, kept := visitSticky(t, p, cookie); again != pod || kept != cookie {
		t.Errorf("the proxy's own cookie led from %s to %s", pod, again)
	}
}

// Cookies of one replica are taken by the others, by those that come after a restart, and
// after the keys of tickets were rotated out. Without a shared key each has its own.
func TestCookiesAreTakenByOtherReplicas(t *testing.T) {
	key := snapshot.Key{Namespace: "quayside-system", Name: tickets.Name}
	pods := stickyPods(t)
	oneFiles, one := stickyReplica(t, key, pods)
	twoFiles, two := stickyReplica(t, key, pods)
	now := time.Now()
	data, _ := tickets.Rotate(nil, now, controller.NewTicketKey)
	delete(data, "cookies") // as an older controller made it
	put := func(all ...*cluster.Files) {
		for _, files := range all {
			files.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data})
		}
	}
	told := func(p *proxy.Proxy) bool {
		return slices.ContainsFunc(p.Problems(), func(p snapshot.Problem) bool { return p.Reason == "NoCookieKey" && p.Object.Key == key })
	}
	put(oneFiles, twoFiles)
	_, before := visitSticky(t, one, "")
	if _, kept := visitSticky(t, one, before); kept != before || !told(one) || !told(two) {
		t.Errorf("without a shared key a cookie %s became %s; told %v, %v", before, kept, told(one), told(two))
	}
	if _, kept := visitSticky(t, two, before); kept == before {
		t.Error("two proxies that share no key take each other's cookies")
	}

	data, _ = tickets.Rotate(data, now.Add(time.Minute), controller.NewTicketKey)
	put(oneFiles, twoFiles)
	eventually(t, "the shared key is in force", func() bool { return !told(one) && !told(two) })
	clients := map[string]string{} // cookie to pod
	eventually(t, "its cookies are made", func() bool {
		pod, cookie := visitSticky(t, one, "")
		_, kept := visitSticky(t, two, cookie)
		if kept == cookie {
			clients[cookie] = pod
		}
		return len(clients) == 8
	})
	for range 4 {
		now = now.Add(tickets.Period)
		data, _ = tickets.Rotate(data, now, controller.NewTicketKey)
	}
	put(oneFiles, twoFiles)
	threeFiles, three := stickyReplica(t, key, pods)
	put(threeFiles)
	eventually(t, "the new one has read it", func() bool { return !told(three) })
	first := true
	for cookie, pod := range clients {
		if first { // the table with the key is compiled before that of the endpoints
			eventually(t, "it takes cookies", func() bool { _, kept := visitSticky(t, three, cookie); return kept == cookie })
			first = false
		}
		for i, p := range []*proxy.Proxy{one, two, three} {
			if at, kept := visitSticky(t, p, cookie); at != pod || kept != cookie {
				t.Errorf("replica %d: from %s to %s, cookie %s became %s", i, pod, at, cookie, kept)
			}
		}
	}
}

// Who has a session with a canary stays there at every replica, also where the key came
// after the routes.
func TestCanarySessionsAreTakenByOtherReplicas(t *testing.T) {
	key := snapshot.Key{Namespace: "quayside-system", Name: tickets.Name}
	pods, canary := stickyPods(t), echo(t, "new-0")
	data, _ := tickets.Rotate(nil, time.Now(), controller.NewTicketKey)
	var replicas []*proxy.Proxy
	for range 2 {
		files, p := stickyReplica(t, key, pods)
		ing := ingress("next", "sticky.test", "/", "next", number)
		ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/canary": "true", "nginx.ingress.kubernetes.io/canary-weight": "50"}
		files.Put(service("next", corev1.ServicePort{Port: 80}), slice("next", "", canary), ing)
		eventually(t, "the canary is there", func() bool { pod, _ := visitSticky(t, p, ""); return pod == "new-0" })
		files.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data})
		replicas = append(replicas, p)
	}
	atCanary, cookie := "", ""
	eventually(t, "a cookie of the canary is taken by both", func() bool {
		if atCanary, cookie = visitSticky(t, replicas[0], ""); atCanary != "new-0" {
			return false
		}
		pod, kept := visitSticky(t, replicas[1], cookie)
		return pod == atCanary && kept == cookie
	})
	for i := range 32 { // half of those without a session go there
		if pod, kept := visitSticky(t, replicas[i%2], cookie); pod != atCanary || kept != cookie {
			t.Errorf("visit %d to replica %d: from %s to %s, cookie %s became %s", i, i%2, atCanary, pod, cookie, kept)
		}
	}
}
