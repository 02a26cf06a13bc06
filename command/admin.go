package command

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/command/admin"
)

// The values of --admin-auth.
const (
	authNone     = "None"
	authLoopback = "Loopback"
	authToken    = "Token"
)

// adminFlags say who sees what the admin endpoint shows. They belong to commands
// that know an API server.
type adminFlags struct {
	auth, certFile, keyFile string
	pprof                   string
}

func (f *adminFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.auth, "admin-auth", authNone, "who sees /metrics, /state and /trace at --admin: None: everybody who reaches it; Loopback: who comes over the loopback of this machine or pod; Token: over TLS, bearers of a token whose user may get these paths, as the API server says (TokenReview, SubjectAccessReview). /healthz and /readyz are open")
	flags.StringVar(&f.certFile, "admin-tls-cert-file", "", "file with the certificate for --admin-auth=Token, read again when it changes; empty: one that signs itself")
	flags.StringVar(&f.keyFile, "admin-tls-key-file", "", "file with its key")
	flags.StringVar(&f.pprof, "pprof", "", "IP:PORT on the loopback to serve profiles at, such as 127.0.0.1:6060; empty: nowhere")
}

func (f *adminFlags) check() error {
	switch f.auth {
	case authNone, authLoopback, authToken:
	default:
		return fmt.Errorf("%w: --admin-auth %q: want %s, %s or %s", errBadInput, f.auth, authNone, authLoopback, authToken)
	}
	if (f.certFile == "") != (f.keyFile == "") {
		return fmt.Errorf("%w: --admin-tls-cert-file and --admin-tls-key-file belong together", errBadInput)
	}
	if f.certFile != "" && f.auth != authToken {
		return fmt.Errorf("%w: --admin-tls-cert-file: only --admin-auth=%s speaks TLS", errBadInput, authToken)
	}
	if at, err := netip.ParseAddrPort(f.pprof); f.pprof != "" && (err != nil || !at.Addr().IsLoopback()) {
		return fmt.Errorf("%w: --pprof %q: want a loopback address, such as 127.0.0.1:6060", errBadInput, f.pprof)
	}
	return nil
}

// protect gives the admin endpoint of p its guard, and returns what lives beside it.
func (f *adminFlags) protect(p *process, api *cluster.API) []task {
	access := admin.Access{Loopback: f.auth == authLoopback, CertFile: f.certFile, KeyFile: f.keyFile}
	if f.auth == authToken {
		access.Review = api.Review
	}
	p.admin.Protect(access)
	tasks := []task{running(api.Run)}
	if f.pprof != "" {
		tasks = append(tasks, running(func(ctx context.Context) error { return admin.Profiles(ctx, f.pprof, p.log) }))
	}
	return tasks
}
