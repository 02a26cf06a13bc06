// Package lab is a real Kubernetes cluster without containers: etcd,
// kube-apiserver, kube-controller-manager and one kube-proxy per node, in
// network namespaces on one bridge, up in a few seconds.
//
//	c := lab.New(t, lab.Nodes(3), lab.KubeProxy("nftables"))
//	web := c.Pod(1, "web", lab.Labels{"app": "web"})
//	c.Apply(`{apiVersion: v1, kind: Service, …}`)
//	reply := c.Client("laptop").Get("http://10.77.0.200/").Reply()
//	c.Node(1).Fail()
//
// What is real: every Kubernetes component, RBAC, admission, kube-proxy's rules, the
// kernel's network between all of it, and our own binary with the chart's accounts, users
// and capabilities; MetalLB, where a test wants it. What the lab plays: the kubelet, the
// scheduler and the workload controllers (it starts processes, probes them and writes the
// status of Pods and Nodes).
//
//	10.77.0.0/24   the LAN: API server .2, routers .1 and .3 to .9, nodes .11
//	               and up, clients .101 to .149; .200 and up are free for pools
//	10.244.N.0/24  pods of node N, routed veths, never on the bridge
//	10.96.0.0/16   Services       (fd77::/64, fd44:0:0:N::/64, fd96::/108)
//
// What holds: nothing outlives the lab. All processes live in one PID
// namespace that dies with the process that began it; namespaces are named
// qs-<pid>-… and the next lab removes those whose pid is gone.
//
// Methods fail the test that they were made for (Cluster.With); a Cluster
// without a test, as in `make lab`, panics instead. Read cluster.go first.
package lab
