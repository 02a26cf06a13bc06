package main

import (
	"fmt"
	"os/exec"

	"quayside.io/test/lab"
)

// guide prints where you are and what to try.
func guide(c *lab.Cluster, installed bool) {
	fmt.Printf(`
You are on 10.77.0.101, a machine on the LAN of a Kubernetes cluster:
`)
	for _, n := range c.Nodes() {
		fmt.Printf("  %s  %s  %s   ip netns exec %s …\n", n.Name(), n.IP(), n.MAC(), n.Netns())
	}
	fmt.Printf("  logs of every process: %s\n", c.Logs())
	if _, err := exec.LookPath("kubectl"); err != nil {
		fmt.Println("  kubectl is not installed: put one in PATH (https://kubernetes.io/docs/tasks/tools), KUBECONFIG is set")
	}
	if !installed {
		fmt.Print("\nQuayside is not installed. Leave with exit.\n\n")
		return
	}
	n := c.Node(1)
	fmt.Printf(`
Things to try:
  kubectl get services -A                     the addresses that were given
  quayside status                             one screen about all of it; also kubectl quayside status
  web=$(kubectl get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}')
  curl http://$web/                           which pod answers, and which client does it see?
  arping -c 3 $web                            which node answers for the address?
  edge=$(kubectl get service quayside-proxy -n %[1]s -o jsonpath='{.status.loadBalancer.ingress[0].ip}')
  curl -H 'Host: web.example.com' http://$edge/      the same pods, through the proxy
  kubectl expose pod web-1 --type LoadBalancer --port 80 --target-port 8080 --name mine
  kubectl get speakerstatuses,ipaddresspools -o yaml
  kubectl get events -A --sort-by .lastTimestamp
  ip -n %[2]s link set %[3]s down      pull the cable of %[3]s at the switch, and ask arping again
  ip -n %[2]s link set %[3]s up
  kubectl annotate service web quayside.io/loadBalancerIPs=10.77.0.222
There is no kubelet: kubectl logs, exec and run do not work. Leave with exit.

`, lab.ProxyNamespace, c.Switch(), n.Name())
}
