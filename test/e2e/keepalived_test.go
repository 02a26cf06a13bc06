package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/lab"
)

// keepalivedConfig is what differs between two ways of running keepalived.
type keepalivedConfig struct {
	version  int    // of VRRP
	advert   string // seconds from one advertisement to the next
	priority int    // of node 1; one less for each further node
}

// keepalivedDefault is what one gets without asking: VRRP 2, which counts in
// whole seconds, and priorities about the default of 100.
func keepalivedDefault() keepalivedConfig {
	return keepalivedConfig{version: 2, advert: "1", priority: 102}
}

// keepalivedTuned has ten advertisements a second, and the priorities that
// make a backup's additional wait (skew time) shortest.
func keepalivedTuned() keepalivedConfig {
	return keepalivedConfig{version: 3, advert: "0.1", priority: 254}
}

// file is keepalived.conf for one node. Nobody begins as master, so an address
// is only taken after nobody else was heard.
func (k keepalivedConfig) file(node int, name, address string) string {
	return fmt.Sprintf(`
global_defs {
  router_id %s
  vrrp_version %d
}
vrrp_instance lan {
  state BACKUP
  interface eth0
  virtual_router_id 77
  priority %d
  advert_int %s
  virtual_ipaddress {
    %s/32
  }
}
`, name, k.version, k.priority-node, k.advert, address)
}

// keepalivedVersion says which keepalived this machine has, or why none.
func keepalivedVersion() (string, error) {
	out, err := exec.Command("keepalived", "--version").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("it is not installed; run `make packages` as root")
	}
	if err != nil {
		return "", err
	}
	words := append(strings.Fields(string(out)), "", "")
	return "keepalived " + words[1], nil
}

// byKeepalived gives Service web an address by hand, as one does without a
// controller, and lets a keepalived on each node move it.
func byKeepalived(name string, config keepalivedConfig) mover {
	running := map[string]*exec.Cmd{} // by node
	start := func(r *rig, n *lab.Node) {
		i := slices.IndexFunc(r.Nodes(), func(other *lab.Node) bool { return other.Name() == n.Name() })
		running[n.Name()] = r.startKeepalived(n, config.file(i, n.Name(), r.address))
	}
	return mover{
		name: name,
		install: func(r *rig) string {
			r.address = "10.77.0.200"
			_, err := r.Kube().CoreV1().Services(r.Namespace()).Patch(r.b.Context(), "web", types.MergePatchType,
				[]byte(fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, r.address)), metav1.PatchOptions{}, "status")
			if err != nil {
				r.b.Fatal(err)
			}
			for _, n := range r.Nodes() {
				start(r, n)
			}
			r.b.Cleanup(func() {
				for _, cmd := range running {
					endKeepalived(cmd, syscall.SIGTERM)
				}
			})
			return r.address
		},
		agrees: (*rig).oneInterfaceHolds,
		// Its parent would start the process that speaks VRRP again: both go.
		kill:   func(_ *rig, n *lab.Node) { endKeepalived(running[n.Name()], syscall.SIGKILL) },
		revive: start,
	}
}

// oneInterfaceHolds is how keepalived holds an address: the kernel of whoever
// has it on an interface answers for it.
func (r *rig) oneInterfaceHolds(owner string) error {
	for _, n := range r.Nodes() {
		holds := n.Exec("ip", "-4", "-o", "addr", "show", "dev", "eth0", "to", r.address) != ""
		if holds != (n.Name() == owner) {
			return fmt.Errorf("%s answers for %s; %s has it: %v", owner, r.address, n.Name(), holds)
		}
	}
	return nil
}

// startKeepalived runs it until endKeepalived, or as long as this process.
func (r *rig) startKeepalived(n *lab.Node, config string) *exec.Cmd {
	dir := r.b.TempDir()
	conf := filepath.Join(dir, "keepalived.conf")
	if err := os.WriteFile(conf, []byte(config), 0o644); err != nil {
		r.b.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.Command("keepalived", "--dont-fork", "--log-console", "--vrrp", "--use-file="+conf,
		"--pid="+filepath.Join(dir, "pid"), "--vrrp_pid="+filepath.Join(dir, "vrrp.pid"))
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := n.Start(cmd); err != nil {
		r.b.Fatal(err)
	}
	r.b.Cleanup(func() {
		if r.b.Failed() {
			r.b.Logf("keepalived on %s:\n%s", n.Name(), log.String())
		}
	})
	return cmd
}

// endKeepalived signals both of its processes; they may have ended already.
func endKeepalived(cmd *exec.Cmd, sig syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, sig)
	_ = cmd.Wait()
}
