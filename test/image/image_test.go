package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// program builds a static program for this machine.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "hello")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a program: %v\n%s", err, out)
	}
	return binary
}

func TestBuild(t *testing.T) {
	o := Options{Binary: program(t), Platform: "linux/" + runtime.GOARCH, Version: "1.2.3"}
	image, err := Build(o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "image")
	for range 2 { // the second time over the first
		if err := Write(image, dir, o.Version); err != nil {
			t.Fatal(err)
		}
	}

	// Read it back as a registry or a container engine would.
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("index %+v", manifest)
	}
	read, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != User || !slices.Equal(config.Config.Entrypoint, []string{Binary}) || config.Architecture != runtime.GOARCH || config.OS != "linux" {
		t.Errorf("config %+v", config)
	}
	if len(config.Config.Env) > 0 || !config.Created.IsZero() {
		t.Errorf("the image knows when or where it was built: %v, %v", config.Config.Env, config.Created)
	}
	layers, err := read.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	files, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	archive := tar.NewReader(files)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(o.Binary)
	if err != nil {
		t.Fatal(err)
	}
	if "/"+header.Name != Binary || header.Mode != 0o555 || header.Uid != 0 || !slices.Equal(content, want) {
		t.Errorf("file %+v, %d bytes of %d", header, len(content), len(want))
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("a second file: %v", err)
	}
}

// TestSameDigest: the image depends on the binary's bytes, not on where it lay or when.
func TestSameDigest(t *testing.T) {
	first := program(t)
	data, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(second, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for _, binary := range []string{first, second} {
		image, err := Build(Options{Binary: binary, Platform: "linux/" + runtime.GOARCH, Version: "dev"})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("digests differ: %v", digests)
	}
}

func TestRefused(t *testing.T) {
	binary := program(t)
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"not for " + other:       {Binary: binary, Platform: "linux/" + other},
		"want one like":          {Binary: binary, Platform: ""},
		"not a Linux executable": {Binary: script, Platform: "linux/amd64"},
		"read the binary":        {Binary: script + "-missing", Platform: "linux/amd64"},
	} {
		if _, err := Build(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	if shell, err := os.ReadFile("/bin/sh"); err == nil {
		if err := static(shell, runtime.GOARCH); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
			t.Errorf("/bin/sh passes for static: %v", err)
		}
	}
}

// TestDockerfile: the other way to the same image copies every package that
// the binary needs, and ends with the same user, entry point and nothing else.
func TestDockerfile(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	build, final, ok := strings.Cut(string(data), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the Dockerfile does not end with a stage FROM scratch")
	}
	want := []string{"COPY --from=build --chmod=555 /quayside " + Binary, "USER " + User, `ENTRYPOINT ["` + Binary + `"]`}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(final), "\n")); diff != "" {
		t.Errorf("last stage (-want +got):\n%s", diff)
	}
	copied := map[string]bool{".": true} // COPY *.go
	for line := range strings.Lines(build) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "COPY" && fields[1] == fields[2] {
			copied[fields[1]] = true
		}
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", ".")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range strings.Fields(string(out)) {
		rel, err := filepath.Rel(absolute, dir)
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if !copied[top] {
			t.Errorf("the binary needs %s, which the Dockerfile does not copy", rel)
		}
	}
}
