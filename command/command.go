package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"quayside.io/cluster"
	"quayside.io/cluster/printable"
)

// Exit codes, part of the contract with users.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // bad usage or bad input
)

// errBadInput marks errors that the user can fix: exit code 2.
var errBadInput = errors.New("bad input")

// env is everything a command takes from the outside world.
type env struct {
	stdout, stderr io.Writer
	version        string
	// admin, logLevel, logFormat and kubeconfig are the flags of every command.
	admin, logLevel, logFormat string
	kubeconfig                 cluster.Kubeconfig
}

// Run is the program: args as os.Args has them, of a binary of that version.
// It returns the exit code: 0 done, 1 failed, 2 bad usage or bad input.
func Run(ctx context.Context, version string, args []string, stdout, stderr io.Writer) int {
	e := &env{stdout: stdout, stderr: stderr, version: version}
	name := "quayside" // whatever the file is called: `go run` takes the module's name
	if base := filepath.Base(args[0]); strings.HasPrefix(base, "kubectl-") {
		name = base
	}
	root := e.command(name)
	root.SetArgs(args[1:])
	root.SetOut(stdout)
	root.SetErr(stderr)
	usage := true // until a command's own code runs, every error is one of usage
	root.PersistentPreRun = func(*cobra.Command, []string) { usage = false }
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case usage || errors.Is(err, errBadInput):
		fmt.Fprintf(stderr, "%s: %s\n", root.Name(), printable.Lines(err.Error()))
		return exitUsage
	default:
		fmt.Fprintf(stderr, "%s: %s\n", root.Name(), printable.Lines(err.Error()))
		return exitFailed
	}
}

// command builds the tree of commands. As a kubectl plugin the binary is
// called kubectl-quayside, and its help says `kubectl quayside`.
func (e *env) command(name string) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: strings.Replace(name, "kubectl-", "kubectl ", 1)},
		Short:         "The edge of a bare-metal Kubernetes cluster: addresses, announcements, Ingress",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.kubeconfig.File, "kubeconfig", "", "kubeconfig file; without it the in-cluster account is used")
	flags.StringVar(&e.kubeconfig.Context, "context", "", "context of the kubeconfig; without it the current one is used")
	flags.StringVar(&e.admin, "admin", "127.0.0.1:7472", "address of /metrics, /healthz, /readyz and /state")
	flags.StringVar(&e.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&e.logFormat, "log-format", "text", "text or json")
	root.AddCommand(e.upCommand(), e.controllerCommand(), e.speakerCommand(), e.proxyCommand(), e.statusCommand(), e.traceCommand(), e.migrateCommand(), e.versionCommand())
	return root
}

func (e *env) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.stdout, "quayside", e.version)
			return err
		},
	}
}

// log returns the logger that the flags ask for.
func (e *env) log(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(e.logLevel)); err != nil {
		return nil, fmt.Errorf("%w: --log-level %q: want debug, info, warn or error", errBadInput, e.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch e.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("%w: --log-format %q: want text or json", errBadInput, e.logFormat)
}
