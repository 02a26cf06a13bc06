package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Oracle is software of others that says, by its own code, what becomes of objects that it is
// asked about. It needs neither a lab nor root.
type Oracle struct {
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// NewMetalLBOracle builds part of MetalLB, "controller" or "speaker", with what is in
// test/metallb/oracle for it, once per version, and starts it. It ends with ctx. Asked about a
// cluster, it says what becomes of its Services there.
func NewMetalLBOracle(ctx context.Context, part string, logf func(string, ...any)) (*Oracle, error) {
	folder, err := metalLBOracles(ctx, logf)
	if err != nil {
		return nil, err
	}
	return startOracle(ctx, "MetalLB", filepath.Join(folder, part), "")
}

// NewKubeProxyOracle builds what is in test/lab/kube/endpoints, once per version, and starts it.
// It ends with ctx. Asked about a Service and a node, kube-proxy says to which endpoints the
// node takes the traffic.
func NewKubeProxyOracle(ctx context.Context, logf func(string, ...any)) (*Oracle, error) {
	folder, err := kubeProxyOracle(ctx, logf)
	if err != nil {
		return nil, err
	}
	return startOracle(ctx, "kube-proxy", filepath.Join(folder, "endpoints"), "")
}

// startOracle runs it in folder; empty: here.
func startOracle(ctx context.Context, name, program, folder string) (*Oracle, error) {
	o := &Oracle{name: name, process: exec.CommandContext(ctx, program)}
	o.process.Dir, o.process.Stderr = folder, os.Stderr
	var err error
	if o.in, err = o.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	out, err := o.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	o.out = bufio.NewReader(out)
	if err := o.process.Start(); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return o, nil
}

// Ask sends a question as JSON, and decodes the answer into answer.
func (o *Oracle) Ask(question, answer any) error {
	if err := json.NewEncoder(o.in).Encode(question); err != nil {
		return fmt.Errorf("lab: ask %s: %w", o.name, err)
	}
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("lab: %s answers: %w", o.name, err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("lab: %s answers: %w", o.name, err)
	}
	return nil
}

// Close ends it.
func (o *Oracle) Close() error {
	if err := o.in.Close(); err != nil {
		return err
	}
	return o.process.Wait()
}

// kubeProxyOracle returns the folder with kube-proxy as an oracle.
func kubeProxyOracle(ctx context.Context, logf func(string, ...any)) (string, error) {
	o := others{name: "kube-proxy as an oracle", folder: "kube-oracle", source: "test/lab/kube", files: []string{"go.mod", "go.sum", "endpoints/main.go"}}
	return o.buildIn("lock", logf, func(source, dir string) error {
		return goBuild(ctx, source, filepath.Join(dir, "endpoints"), "./endpoints")
	})
}

// oracleMain is where main of every oracle is in test/metallb and in test/ingressnginx, and
// oracleOf is where the rest of that for a part of what is asked is.
const oracleMain = "oracle/main.go"

func oracleOf(part string) string { return filepath.Join("oracle", part, "oracle.go") }

// metalLBOracles returns a folder with the parts of MetalLB as oracles.
func metalLBOracles(ctx context.Context, logf func(string, ...any)) (string, error) {
	o := others{name: "MetalLB as an oracle", folder: "metallb-oracle", source: "test/metallb",
		files: []string{"go.mod", "go.sum", "frrk8s/api/v1beta1/types.go", oracleMain, oracleOf("controller"), oracleOf("speaker")}}
	return o.buildIn("lock-metallb", logf, func(source, dir string) error {
		folder, err := metalLBFolder(ctx, source)
		if err != nil {
			return err
		}
		own := filepath.Join(dir, "source")
		if err := copyModule(source, folder, own, metalLBModule, "api", "controller", "internal", "speaker"); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		for _, part := range []string{"controller", "speaker"} {
			if err := placeOracle(source, own, part); err != nil {
				return fmt.Errorf("lab: %w", err)
			}
			if err := goBuild(ctx, source, filepath.Join(dir, part), "-modfile="+filepath.Join(own, "oracle.mod"), "-tags=oracle", metalLBModule+"/"+part); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyModule copies parts of the source of another module from folder to own, and writes a go.mod
// like that in source which takes the module from there: of what is in its cache, go lets nothing
// be overlaid.
func copyModule(source, folder, own, module string, parts ...string) error {
	if err := os.RemoveAll(own); err != nil { // of a build that was broken off
		return err
	}
	for _, part := range parts {
		if err := os.CopyFS(filepath.Join(own, part), os.DirFS(filepath.Join(folder, part))); err != nil {
			return err
		}
	}
	requires, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	requires = fmt.Appendf(requires, "\nreplace %s => %s\n", module, own)
	return errors.Join(
		os.WriteFile(filepath.Join(own, "oracle.mod"), requires, 0o644),
		copyFile(filepath.Join(source, "go.sum"), filepath.Join(own, "oracle.sum")),
		copyFile(filepath.Join(folder, "go.mod"), filepath.Join(own, "go.mod")),
	)
}

// placeOracle puts the oracle in a part of MetalLB in the place of main.
func placeOracle(source, own, part string) error {
	file := filepath.Join(own, part, "main.go")
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const theirs = "func main() {"
	if !bytes.Contains(program, []byte(theirs)) {
		return fmt.Errorf("%s has no %q", file, theirs)
	}
	program = bytes.Replace(program, []byte(theirs), []byte("func mainOfMetalLB() {"), 1)
	return errors.Join(
		os.WriteFile(file, program, 0o644),
		copyFile(filepath.Join(source, oracleMain), filepath.Join(own, part, "oracle_main.go")),
		copyFile(filepath.Join(source, oracleOf(part)), filepath.Join(own, part, "oracle.go")),
	)
}

// moduleFolder is where go has the source of a module, of the version that go.mod in source
// requires. It fetches that first, if need be.
func moduleFolder(ctx context.Context, source, module string) (version, folder string, err error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir, download.Env = source, append(os.Environ(), "GOWORK=off")
	said, err := download.Output() // says what is wrong, too
	if err != nil {
		return "", "", fmt.Errorf("lab: fetching %s: %w\n%s", module, err, said)
	}
	var has struct{ Version, Dir string }
	if err := json.Unmarshal(said, &has); err != nil {
		return "", "", fmt.Errorf("lab: fetching %s: %w", module, err)
	}
	return has.Version, has.Dir, nil
}

// ChartOf is the folder of the chart of ingress-nginx or of MetalLB, as go has their source.
func ChartOf(ctx context.Context, name string) (folder string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if name == "metallb" {
		folder, err = metalLBFolder(ctx, filepath.Join(root, "test/metallb"))
	} else {
		_, folder, err = moduleFolder(ctx, filepath.Join(root, "test/ingressnginx"), ingressNginxModule)
	}
	return filepath.Join(folder, "charts", name), err
}

// metalLBFolder is that of MetalLB, which must be of MetalLBVersion.
func metalLBFolder(ctx context.Context, source string) (string, error) {
	version, folder, err := moduleFolder(ctx, source, metalLBModule)
	if err != nil {
		return "", err
	}
	if version != "v"+MetalLBVersion {
		return "", fmt.Errorf("lab: go.mod has MetalLB %s, MetalLBVersion is %s", version, MetalLBVersion)
	}
	return folder, nil
}
