package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/printable"
	"quayside.io/command/migrate"
)

// migrateFlags are the flags of `migrate`.
type migrateFlags struct {
	files, classes []string
	output, only   string
	proxies        string
}

func (e *env) migrateCommand() *cobra.Command {
	var f migrateFlags
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Turn the objects of MetalLB and of ingress-nginx into ours",
		Long: `Turn the objects of MetalLB, of any age, and Ingresses of class nginx, or of
those that --ingress-class names, into ours, and print them for ` + "`kubectl apply -f -`" + `; read them first. What has
no equivalent is said in comments and on standard error. Without -f the objects are read from the cluster;
nothing is changed there. Annotations of Services need no migration: MetalLB's are read. Files may also hold the
ConfigMaps tcp-services and udp-services of ingress-nginx, with the Services that they lead to. NetworkPolicies that
let in ingress-nginx are printed as they let in our proxies, too.`,
		Example: "  quayside migrate >quayside.yaml\n  kubectl get ingress,configmap,service -A -o yaml | quayside migrate -f -",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"yaml", "json"}, f.output) {
				return fmt.Errorf("%w: --output %q: want yaml or json", errBadInput, f.output)
			}
			if !slices.Contains([]string{"", migrate.Addresses, migrate.Ingresses}, f.only) {
				return fmt.Errorf("%w: --only %q: want addresses or ingresses", errBadInput, f.only)
			}
			if len(validation.IsDNS1123Label(f.proxies)) > 0 {
				return fmt.Errorf("%w: --proxy-namespace %q: want the name of a namespace", errBadInput, f.proxies)
			}
			return e.migrate(c.Context(), f)
		},
	}
	c.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "file or folder of manifests, - for standard input (repeatable); the cluster by default")
	c.Flags().StringVarP(&f.output, "output", "o", "yaml", "yaml or json")
	c.Flags().StringArrayVar(&f.classes, "ingress-class", []string{ingressclass.NginxName}, "class of Ingresses to take over, or CLASS=OURS with the name of what it becomes, \""+ingressclass.DefaultName+"\" by default; =OURS for those without a class (repeatable)")
	c.Flags().StringVar(&f.proxies, "proxy-namespace", migrate.DefaultProxyNamespace, "namespace of our proxies, which NetworkPolicies that let in ingress-nginx are to let in")
	c.Flags().StringVar(&f.only, "only", "", "addresses: what was MetalLB's; ingresses: what was ingress-nginx's; both by default")
	c.AddCommand(e.migrateValuesCommand())
	return c
}

func (e *env) migrateValuesCommand() *cobra.Command {
	var file, chart string
	c := &cobra.Command{
		Use:     "values",
		Short:   "Turn values of the charts of ingress-nginx and MetalLB into those of ours",
		Long:    "Turn values of the chart of ingress-nginx, or of MetalLB, into those of ours, and print them for `helm install -f`. What has no\nequivalent, or is said elsewhere, comes as comments before them.",
		Example: "  helm get values ingress-nginx -n ingress-nginx -o yaml | quayside migrate values -f - >values.yaml\n  helm get values metallb -n metallb-system -o yaml | quayside migrate values --chart metallb -f -",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := readValues(file)
			if err != nil {
				return err
			}
			values, err := migrate.ReadChart(chart, text)
			if err != nil {
				return fmt.Errorf("%w: %w", errBadInput, err)
			}
			return values.WriteYAML(e.stdout)
		},
	}
	c.Flags().StringVarP(&file, "filename", "f", "-", "file of values, - for standard input")
	c.Flags().StringVar(&chart, "chart", migrate.IngressNginxChart, migrate.IngressNginxChart+" or "+migrate.MetalLBChart)
	return c
}

// readValues reads no more of a file than is judged.
func readValues(file string) ([]byte, error) {
	in := os.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, migrate.MaxValues+1))
}

func (e *env) migrate(ctx context.Context, f migrateFlags) error {
	m := migrate.Migration{Only: f.only, Classes: map[string]string{}, ProxyNamespace: f.proxies}
	for _, class := range f.classes {
		theirs, ours, _ := strings.Cut(class, "=")
		if theirs != "" { // without a class is not what an empty variable means
			ours = cmp.Or(ours, ingressclass.DefaultName)
		}
		if len(validation.IsDNS1123Subdomain(ours)) > 0 {
			return fmt.Errorf("%w: --ingress-class %q: want CLASS or CLASS=OURS, or =OURS for those without a class", errBadInput, class)
		}
		m.Classes[theirs] = ours
	}
	failed := e.gather(ctx, &m, f.files)
	result := m.Result()
	for _, n := range result.AllNotes() {
		fmt.Fprintln(e.stderr, "note:", printable.Line(n))
	}
	write := result.WriteYAML
	if f.output == "json" {
		write = result.WriteJSON
	}
	return errors.Join(write(e.stdout), failed)
}

// gather reads files, or the cluster where none is named. What can be read is,
// whatever else cannot.
func (e *env) gather(ctx context.Context, m *migrate.Migration, files []string) error {
	if len(files) == 0 {
		kubeconfig, ok := e.findKubeconfig()
		if !ok {
			return fmt.Errorf("%w: no cluster is configured (--kubeconfig); name files with -f", errBadInput)
		}
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		ingresses := m.Only != migrate.Addresses
		text, err := cluster.Foreign(ctx, kubeconfig, cluster.ForeignKinds{Addresses: m.Only != migrate.Ingresses, Ingresses: ingresses})
		beside, unread := cluster.Foreign(ctx, kubeconfig, cluster.ForeignKinds{Services: true, Beside: ingresses})
		if unread != nil { // our objects are the same without that
			const addressed = "Services that share an address across namespaces"
			const served = "NetworkPolicies that keep our proxies from an application, and how certificates are renewed,"
			of := map[string]string{migrate.Addresses: addressed, migrate.Ingresses: served, "": addressed + ", " + served}
			fmt.Fprintf(e.stderr, "note: %s may be missing here: %s\n", of[m.Only], printable.Line(unread.Error()))
		}
		return errors.Join(m.Read("the cluster", slices.Concat(text, beside)), err)
	}
	var all []error
	for _, name := range files {
		all = append(all, e.gatherFile(m, name))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("%w: %w", errBadInput, err)
	}
	return nil
}

func (e *env) gatherFile(m *migrate.Migration, name string) error {
	if name == "-" {
		text, err := io.ReadAll(os.Stdin)
		return errors.Join(err, m.Read("standard input", text))
	}
	var all []error
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		manifest := slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
		if err != nil || d.IsDir() || path != name && !manifest {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = m.Read(path, text)
		}
		all = append(all, err)
		return nil
	})
	return errors.Join(append(all, err)...)
}
