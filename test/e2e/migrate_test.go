package e2e

import (
	"strings"
	"testing"

	"quayside.io/command/migrate"
)

// metalLBPools is a kind of MetalLB's, as far as it matters here.
const metalLBPools = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ipaddresspools.metallb.io}
spec:
  group: metallb.io
  names: {kind: IPAddressPool, plural: ipaddresspools}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// metalLBPool is one of that kind.
const metalLBPool = `
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: before}
spec: {addresses: [10.77.9.0/28], autoAssign: false, protocol: layer2}
`

// nginxAlone is a NetworkPolicy that keeps everybody else out.
const nginxAlone = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: nginx-alone, namespace: default}
spec:
  podSelector: {matchLabels: {app: nobody}}
  ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress-nginx}}}]}]
`

// What MetalLB and ingress-nginx left in a cluster: `quayside migrate` reads it
// there, and what it prints is taken as it is.
func TestMigrateFromTheCluster(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.Apply(metalLBPools)
	e.Eventually(settle, func() error { return e.TryApply(metalLBPool) })
	e.Apply(ingressFor("before", "ingressClassName: nginx", "nginx.ingress.kubernetes.io/fastcgi-index: index.php", "before.example.com", "video"))
	e.Apply(nginxAlone)
	laptop := e.Client("laptop")
	migrated := func(only string) string {
		return laptop.Exec("sh", "-c", e.Quayside().Binary()+" migrate --kubeconfig "+e.Kubeconfig()+" --only "+only+" 2>/dev/null")
	}
	pools := migrated("addresses")
	if !strings.Contains(pools, "# spec.protocol has no equivalent here and is left out") {
		t.Errorf("nothing is said of a field that is gone:\n%s", pools)
	}
	e.Apply(pools)
	ingresses := migrated("ingresses")
	if !strings.Contains(ingresses, "ingressClassName: quayside") || !strings.Contains(ingresses, "# UnsupportedAnnotation: annotation ingress.quayside.io/fastcgi-index") {
		t.Errorf("the Ingress is not migrated:\n%s", ingresses)
	}
	if !strings.Contains(ingresses, "kubernetes.io/metadata.name: "+migrate.DefaultProxyNamespace) {
		t.Errorf("a NetworkPolicy still keeps our proxies out:\n%s", ingresses)
	}
	e.Apply(ingresses)
}
