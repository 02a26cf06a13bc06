package e2e

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/certificate"
	"quayside.io/test/lab"
)

// ruleFor is an Ingress of that name for the host of the same, with such annotations and
// one rule.
func ruleFor(name, annotations, path, backend string) string {
	service, port, _ := strings.Cut(backend, ":")
	return fmt.Sprintf(`---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, annotations: {%s}}
spec:
  ingressClassName: quayside
  rules: [{host: %[1]s.example.com, http: {paths: [{path: %[3]s, pathType: Prefix, backend: {service: {name: %s, port: {number: %s}}}}]}}]
`, name, annotations, path, service, port)
}

// nginx is an annotation.
func nginx(key, value string) string {
	return fmt.Sprintf("nginx.ingress.kubernetes.io/%s: %q", key, value)
}

// routeCauses leave the requests for a host without an answer from a pod, or take from
// an Ingress what it says.
func routeCauses() []broken {
	traced := []broken{
		{name: "service-missing", objects: ruleFor("$ROW", "", "/", "gone:80"), link: "route",
			says: "Service $NS/gone does not exist", next: "create it, or name another in the Ingress"},
		{name: "port-missing", objects: ruleFor("$ROW", "", "/", "web:81"), link: "route",
			says: "no TCP port 81 in Service $NS/web, which has 3000 named http", next: "name one that the Service has"},
		{name: "class-missing", objects: ofClass("nowhere"), link: "route",
			says: `Ingress $NS/$ROW (class "nowhere", which does not exist), which is not served here`, next: "write ingressClassName: quayside"},
		{name: "class-of-others", link: "route", objects: ofClass("theirs-$NS") + `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: theirs-$NS}
spec: {controller: example.com/theirs}
`,
			says: `Ingress $NS/$ROW (class "theirs-$NS"), which is not served here`, next: "write ingressClassName: quayside, or adopt the class"},
		{name: "users-missing", objects: ruleFor("$ROW", nginx("auth-type", "basic")+", "+nginx("auth-secret", "nobody"), "/", "web:3000"), link: "route",
			says: "auth-secret guards access and its Secret $NS/nobody does not exist, so every request gets a 503", next: "mend that, or remove the annotation if the route may be open"},
		{name: "outside-refused", link: "route", objects: ruleFor("$ROW", "", "/", "outside:80") + `---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: ExternalName, externalName: 169.254.169.254}
`,
			says: "Service $NS/outside is of type ExternalName, and 169.254.169.254: link-local addresses are refused", next: "correct its spec.externalName"},
		{name: "backend-elsewhere", objects: askingFor("$ROW", "", "  externalTrafficPolicy: Local\n  selector: {app: third}\n") + ruleFor("$ROW", "", "/", "$ROW:80"), link: "backend",
			says: "Service $NS/$ROW has externalTrafficPolicy: Local, and its endpoints are", next: "run a proxy on such a node, or set the policy to Cluster"},
		{name: "backend-without-pods", objects: podless + ruleFor("$ROW", "", "/", "$ROW:80"), link: "backend",
			says: "Service $NS/$ROW has no endpoint", next: "see that ready pods match its selector app=nobody"},
	}
	for i := range traced {
		traced[i].asks, traced[i].on = "http://$ROW.example.com/", "Ingress $NS/$ROW"
		if traced[i].link == "backend" {
			traced[i].on = "Service $NS/$ROW"
		}
	}
	told := []broken{
		{name: "path-shadowed", objects: ruleFor("$ROW", "", "/", "web:3000") + strings.Replace(ruleFor("younger", "", "/", "web:3000"), "younger.example", "$ROW.example", 1), on: "Ingress $NS/younger",
			says: "path $ROW.example.com/ (Prefix) is taken by Ingress $NS/$ROW, which comes first", next: "rename one or remove it"},
		{name: "host-of-another-namespace", flags: "--local --host-ownership FirstNamespace",
			objects: ruleFor("$ROW", "", "/", "web:3000") + strings.Replace(ruleFor("$ROW", "", "/too", "web:3000"), "{name:", "{namespace: $OTHER, name:", 1), on: "Ingress $OTHER/$ROW",
			says: "host $ROW.example.com belongs to namespace $NS by Ingress $NS/$ROW, which named it first", next: "ask its owner for the path, or take another host"},
		{name: "annotation-misspelt", objects: ruleFor("$ROW", nginx("proxy-bodysize", "1m"), "/", "web:3000"),
			says: "annotation nginx.ingress.kubernetes.io/proxy-bodysize is not known and has no effect", next: "remove it or correct its spelling"},
		{name: "annotation-unread", objects: ruleFor("$ROW", nginx("proxy-body-size", "plenty"), "/", "web:3000"),
			says: `annotation nginx.ingress.kubernetes.io/proxy-body-size has no effect: "plenty" is not a size`, next: "a number, perhaps with k, m or g"},
		{name: "canary-alone", objects: ruleFor("$ROW", nginx("canary", "true")+", "+nginx("canary-weight", "10"), "/", "web:3000"),
			says: "no other Ingress has path $ROW.example.com/ (Prefix), so this canary gets no requests", next: "give it the host, path and pathType of the Ingress that it is to stand in for"},
		{name: "default-backend-missing", objects: ruleFor("$ROW", nginx("default-backend", "gone"), "/", "web:3000"),
			says: "default-backend has no effect: Service $NS/gone does not exist", next: "create it, or name another"},
	}
	for i := range told {
		if told[i].on == "" {
			told[i].on = "Ingress $NS/$ROW"
		}
	}
	return append(traced, told...)
}

// podCauses are no fault of any object: only an answer tells of them.
func podCauses() []broken {
	return []broken{
		{name: "pods-speak-plain", objects: ruleFor("$ROW", nginx("backend-protocol", "HTTPS"), "/", "web:3000"), asks: "--live http://$ROW.example.com/", on: "Service $NS/web", link: "live http",
			says: "the TLS handshake with Service $NS/web failed; its pods do not serve TLS there", next: "correct the annotation backend-protocol"},
		{name: "pods-do-not-listen", objects: strings.NewReplacer("app: nobody", "app: web", "targetPort: http", "targetPort: 9").Replace(podless) + ruleFor("$ROW", "", "/", "$ROW:80"),
			asks: "--live http://$ROW.example.com/", on: "Service $NS/$ROW", link: "live http",
			says: "Service $NS/$ROW refused the connection", next: "let its pods listen on the targetPort of the Service"},
		{name: "pods-let-nobody-in", objects: strings.Replace(podless, "app: nobody", "app: third", 1) + ruleFor("$ROW", "", "/", "$ROW:80") + thirdAlone, asks: "http://$ROW.example.com/", on: "port 80/TCP of $NS/$ROW", link: "policies",
			says: "NetworkPolicy $NS/third-alone does not let in proxies from namespace " + lab.ProxyNamespace, next: "add one in from, with namespaceSelector"},
	}
}

// thirdAlone keeps everybody else from the pod "third".
const thirdAlone = `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: third-alone}
spec:
  podSelector: {matchLabels: {app: third}}
  ingress: [{from: [{podSelector: {matchLabels: {app: third}}}]}]
`

const podless = `---
apiVersion: v1
kind: Service
metadata: {name: $ROW}
spec:
  selector: {app: nobody}
  ports: [{name: http, port: 80, targetPort: http}]
`

func ofClass(class string) string {
	return strings.Replace(ruleFor("$ROW", "", "/", "web:3000"), "ingressClassName: quayside", "ingressClassName: "+class, 1)
}

// certificateCauses are hosts whose clients are shown a certificate that they refuse.
func certificateCauses() []broken {
	rows := []broken{
		{name: "tls-missing", says: "Secret $NS/$ROW does not exist, so clients get the default certificate", next: "put one and its key there"},
		{name: "tls-of-wrong-type", objects: "---\n{apiVersion: v1, kind: Secret, metadata: {name: $ROW}, stringData: {cert.pem: none}}\n",
			says: "Secret $NS/$ROW", next: "kubernetes.io/tls"},
		{name: "tls-unreadable", objects: "---\n{apiVersion: v1, kind: Secret, metadata: {name: $ROW}, type: kubernetes.io/tls, stringData: {tls.crt: none, tls.key: none}}\n",
			says: "Secret $NS/$ROW has no usable certificate in tls.crt and tls.key", next: "put one and its key there"},
		{name: "tls-expired", make: certified(-time.Hour, "$ROW.example.com"),
			says: "expired at", next: "renew it in the Secret that spec.tls of Ingress"},
		{name: "tls-of-another-host", make: certified(time.Hour, "another.example.com"),
			says: "the certificate in Secret $NS/$ROW is not for host $ROW.example.com but for another.example.com", next: "name a Secret whose certificate is for that host"},
	}
	for i := range rows {
		rows[i].objects += ruleFor("$ROW", "", "/", "web:3000") + "  tls: [{hosts: [$ROW.example.com], secretName: $ROW}]\n"
		rows[i].asks, rows[i].link, rows[i].on = "https://$ROW.example.com/", "certificate", "$NS/$ROW"
	}
	return rows
}

// certified makes a Secret whose certificate is for host, and good for as long.
func certified(validFor time.Duration, host string) func(edge, string) {
	return func(e edge, name string) {
		secret := certificate.Secret(e.t, e.Namespace()+"/"+name, time.Now().Add(validFor), strings.ReplaceAll(host, "$ROW", name))
		if _, err := e.Kube().CoreV1().Secrets(e.Namespace()).Create(e.t.Context(), secret, metav1.CreateOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
}
