package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ingressNginxModule is what is built, of the version that test/ingressnginx/go.mod requires.
const ingressNginxModule = "k8s.io/ingress-nginx"

// IngressNginx is ingress-nginx itself: its controller's code, its template and its Lua, with
// Debian's nginx. It needs root, and no lab.
type IngressNginx struct {
	oracle *Oracle
	asked  ingressNginxQuestion
}

// IngressNginxFlags are flags of its controller; names are NAMESPACE/NAME of an object, empty: not
// set.
type IngressNginxFlags struct {
	ConfigMap             string
	DefaultBackendService string
	DefaultSSLCertificate string
	ValidateAnnotations   bool // which versions since 1.12 do unasked
	Passthrough           bool // --enable-ssl-passthrough
}

// ingressNginxQuestion is what test/ingressnginx/oracle reads.
type ingressNginxQuestion struct {
	Objects  any
	Flags    IngressNginxFlags
	Ports    [5]int
	Template string
	Lua      []string
	Modules  []string
}

// NewIngressNginx builds it, once per version, and starts it, with what it writes in folder. It
// ends with ctx.
func NewIngressNginx(ctx context.Context, folder string, logf func(string, ...any)) (*IngressNginx, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	built, err := ingressNginxOracle(ctx, logf)
	if err != nil {
		return nil, err
	}
	n := &IngressNginx{asked: ingressNginxQuestion{
		Template: filepath.Join(built, "source/rootfs/etc/nginx/template/nginx.tmpl"),
		Lua:      []string{filepath.Join(built, "source/rootfs/etc/nginx/lua"), filepath.Join(root, "test/ingressnginx/lua")},
	}}
	for _, name := range []string{"ndk_http", "ngx_http_lua", "ngx_http_headers_more_filter"} {
		n.asked.Modules = append(n.asked.Modules, "/usr/lib/nginx/modules/"+name+"_module.so")
	}
	n.oracle, err = startOracle(ctx, "ingress-nginx", filepath.Join(built, "oracle"), folder)
	return n, err
}

// Serve has it serve a list of objects, instead of those before, on the first of the ports, and
// HTTPS on the second; the others are its own. Endpoints come a moment later.
func (n *IngressNginx) Serve(objects any, flags IngressNginxFlags, ports [5]int) error {
	n.asked.Objects, n.asked.Flags, n.asked.Ports = objects, flags, ports
	var answer struct{ Error string }
	if err := n.oracle.Ask(n.asked, &answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return fmt.Errorf("lab: ingress-nginx: %s", answer.Error)
	}
	return nil
}

// Close ends it.
func (n *IngressNginx) Close() error { return n.oracle.Close() }

// ingressNginxOracle returns a folder with it as an oracle.
func ingressNginxOracle(ctx context.Context, logf func(string, ...any)) (string, error) {
	o := others{name: "ingress-nginx as an oracle", folder: "ingress-nginx", source: "test/ingressnginx",
		files: []string{"go.mod", "go.sum", oracleMain, oracleOf("controller")}, flags: fmt.Sprint(ingressNginxChanges)}
	return o.buildIn("lock-ingress-nginx", logf, func(source, dir string) error {
		_, folder, err := moduleFolder(ctx, source, ingressNginxModule)
		if err != nil {
			return err
		}
		own := filepath.Join(dir, "source")
		if err := copyIngressNginx(source, folder, own); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		return goBuild(ctx, source, filepath.Join(dir, "oracle"), "-modfile="+filepath.Join(own, "oracle.mod"), "-tags=oracle", ingressNginxModule+"/cmd/oracle")
	})
}

// ingressNginxChanges are what is changed in the copy, by file: where it keeps its files, which
// is the working directory, and how long nginx does not know of new endpoints.
var ingressNginxChanges = [][3]string{
	{"pkg/util/file/structure.go", `"/etc/ingress-controller/`, `"ingress-controller/`},
	{"internal/ingress/annotations/auth/main.go", `"/etc/ingress-controller/`, `"ingress-controller/`},
	{"internal/ingress/controller/store/store.go", `"/etc/ingress-controller/`, `"ingress-controller/`},
	{"rootfs/etc/nginx/lua/balancer.lua", "BACKENDS_SYNC_INTERVAL = 1\n", "BACKENDS_SYNC_INTERVAL = 0.05\n"},
}

// copyIngressNginx copies its source from folder to own, and puts the oracle there.
func copyIngressNginx(source, folder, own string) error {
	if err := copyModule(source, folder, own, ingressNginxModule, "cmd", "internal", "pkg", "rootfs/etc/nginx", "version"); err != nil {
		return err
	}
	for _, c := range ingressNginxChanges {
		file := filepath.Join(own, c[0])
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), c[1]) {
			return fmt.Errorf("%s has no %q", file, c[1])
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), c[1], c[2])), 0o644); err != nil {
			return err
		}
	}
	main := filepath.Join(own, "cmd/oracle")
	return errors.Join(
		os.Mkdir(main, 0o755),
		copyFile(filepath.Join(source, oracleMain), filepath.Join(main, "main.go")),
		copyFile(filepath.Join(source, oracleOf("controller")), filepath.Join(own, "internal/ingress/controller/oracle.go")),
	)
}
