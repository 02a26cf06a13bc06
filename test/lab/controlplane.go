package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"quayside.io/test/lab/sandbox"
)

// controlPlane is the kube-apiserver of the cluster, with the etcd behind it
// and the controller manager beside it, in a namespace of their own on the LAN.
type controlPlane struct {
	run  *run
	ns   *netns
	kube string // folder of the Kubernetes binaries
	pki  *pki
	has  families
	args []string

	managerConfig string // path of its kubeconfig

	etcd, server, manager *Process
}

const (
	adminToken   = "admin-of-the-lab"
	managerToken = "controller-manager-of-the-lab"
	proxyToken   = "kube-proxy-of-the-lab"
	apiPort      = "6443"
)

func newControlPlane(r *run, l *lan, kube string, opts options) (*controlPlane, error) {
	ns, err := newNetns(r.netnsName("api"))
	if err != nil {
		return nil, err
	}
	if err := l.plug(ns, "api", apiHost); err != nil {
		return nil, err
	}
	addresses := []net.IP{net.ParseIP(lanAddr4(apiHost)), net.ParseIP(lanAddr6(apiHost)),
		net.ParseIP(kubernetesIP4), net.ParseIP(kubernetesIP6), net.IPv4(127, 0, 0, 1)}
	certificates, err := newPKI(filepath.Join(r.dir, "pki"), addresses)
	if err != nil {
		return nil, err
	}
	tokens := filepath.Join(r.dir, "pki", "tokens.csv")
	accounts := adminToken + ",admin,1,\"system:masters\"\n" +
		managerToken + ",system:kube-controller-manager,2,\"system:masters\"\n" +
		proxyToken + ",system:kube-proxy,3\n"
	if err := os.WriteFile(tokens, []byte(accounts), 0o600); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	gates, err := frugalGates()
	if err != nil {
		return nil, err
	}
	a := &controlPlane{run: r, ns: ns, kube: kube, pki: certificates, has: opts.families}
	a.args = append([]string{
		filepath.Join(kube, "kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address=" + opts.onLAN(apiHost),
		"--secure-port=" + apiPort,
		"--tls-cert-file=" + certificates.cert,
		"--tls-private-key-file=" + certificates.key,
		"--token-auth-file=" + tokens,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + certificates.accounts,
		"--service-account-signing-key-file=" + certificates.accounts,
		"--service-cluster-ip-range=" + strings.Join(opts.each(serviceCIDR4, serviceCIDR6), ","),
		"--allow-privileged=true",
		// Some clusters have it, and it is the stricter one.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--shutdown-delay-duration=0",
	}, append(gates, opts.apiserverArgs...)...)
	return a, nil
}

// start brings up etcd, the API server and, once that answers, the rest.
func (a *controlPlane) start(ctx context.Context, opts options) error {
	var err error
	data := filepath.Join(a.run.dir, "etcd")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	a.etcd, err = a.run.start("etcd", &sandbox.Spec{
		NetNS: a.ns.path,
		Env:   frugal(),
		Tmpfs: []string{data}, // no disk: the lab's data need not survive it
		Argv: []string{"etcd", "--data-dir=" + data, "--log-level=warn",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380"},
	})
	if err != nil {
		return err
	}
	if err := a.startServer(ctx); err != nil {
		return err
	}
	a.managerConfig = filepath.Join(a.run.dir, "pki", "controller-manager.kubeconfig")
	if err := a.writeKubeconfig(a.managerConfig, managerToken, "https://127.0.0.1:"+apiPort); err != nil {
		return err
	}
	return a.startManager(opts)
}

func (a *controlPlane) startManager(opts options) (err error) {
	a.manager, err = a.run.start("kube-controller-manager", &sandbox.Spec{
		NetNS: a.ns.path,
		Env:   frugal(),
		Argv: []string{
			filepath.Join(a.kube, "kube-controller-manager"),
			"--kubeconfig=" + a.managerConfig,
			"--leader-elect=false",
			"--bind-address=127.0.0.1",
			"--service-account-private-key-file=" + a.pki.accounts,
			"--root-ca-file=" + a.pki.ca,
			"--node-monitor-grace-period=" + opts.nodeGrace.String(),
			"--kube-api-qps=500", "--kube-api-burst=1000",
			// The API server's proxy to Services looks for Endpoints to this day.
			"--controllers=endpoints-controller,endpointslice-controller,namespace-controller,serviceaccount-controller," +
				"serviceaccount-token-controller,root-ca-certificate-publisher-controller," +
				"node-lifecycle-controller,garbage-collector-controller," +
				"validatingadmissionpolicy-status-controller",
		},
	})
	return err
}

// frugal is the environment of what is not ours to measure. It gives memory for
// processor time, an eighth of what a suite of labs takes; and on one processor
// nothing that rests wakes a second thread for each thing it does, a quarter of what
// a cluster at rest takes.
func frugal() []string { return append(os.Environ(), "GOGC=400", "GOMAXPROCS=1") }

// startServer starts kube-apiserver and waits until it is ready.
func (a *controlPlane) startServer(ctx context.Context) error {
	var err error
	a.server, err = a.run.start("kube-apiserver", &sandbox.Spec{NetNS: a.ns.path, Env: frugal(), Argv: a.args})
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(a.config())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := a.lanURL() + "/readyz"
	return eventually(90*time.Second, func() error {
		if a.server.Ended() {
			return fmt.Errorf("kube-apiserver ended: %w: %s", a.server.err, tail(a.server.Log(), 5))
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", resp.Status)
		}
		return nil
	})
}

// config is the administrator's access. Its connections start in the API
// server's own namespace, so that no fault on the LAN cuts the lab itself off.
func (a *controlPlane) config() *rest.Config {
	return &rest.Config{
		Host:            a.lanURL(),
		BearerToken:     adminToken,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.pki.caPEM},
		Dial:            a.ns.dial,
		QPS:             -1, // unlimited: the lab is not what is tested
		UserAgent:       "quayside-lab",
	}
}

func (a *controlPlane) writeKubeconfig(path, token, server string) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["lab"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.pki.caPEM}
	c.AuthInfos["lab"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	c.CurrentContext = "lab"
	text, err := clientcmd.Write(*c)
	if there, unread := os.ReadFile(path); err == nil && unread == nil && bytes.Equal(there, text) {
		return nil // somebody may be reading it
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("lab: write %s: %w", path, err)
	}
	return nil
}

// lanURL is the API server as everyone on the LAN reaches it.
func (a *controlPlane) lanURL() string {
	return "https://" + net.JoinHostPort(a.has.onLAN(apiHost), apiPort)
}

func (a *controlPlane) close() error { return a.ns.close() }

// proxyConfig is the configuration of every kube-proxy but for its node.
func proxyConfig(node, mode, kubeconfig string, opts options) string {
	cluster := strings.Join(opts.each(podCIDR4, podCIDR6), ",")
	return strings.NewReplacer("NODE", node, "MODE", mode, "KUBECONFIG", kubeconfig, "CLUSTER", cluster).Replace(`
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: MODE
hostnameOverride: NODE
clientConnection: {kubeconfig: KUBECONFIG, qps: 500, burst: 1000}
clusterCIDR: CLUSTER
detectLocalMode: ClusterCIDR
# Connection tracking limits belong to the machine, not to a namespace.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
# As often as by default. With 200 ms, which tests would wait less for, the rules of a
# Service that comes and goes cost each node three times as much: more than all else does.
nftables: {minSyncPeriod: 1s, syncPeriod: 30s}
iptables: {minSyncPeriod: 1s, syncPeriod: 30s}
`)
}
