package image

import (
	"archive/tar"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
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
	v1 "github.com/google/go-containerregistry/pkg/v1"
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
		if err := Write(dir, o.Version, image); err != nil {
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

// TestSameDigest: the image, its index and the SBOM depend on the binary's bytes, not on
// where it lay or when.
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
	var digests, indexes, boms []string
	for _, binary := range []string{first, second} {
		image, err := Build(Options{Binary: binary, Platform: "linux/" + runtime.GOARCH, Version: "dev"})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := Write(dir, "dev", image); err != nil {
			t.Fatal(err)
		}
		index, err := os.ReadFile(filepath.Join(dir, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		bom, err := SBOM(binary, "dev")
		if err != nil {
			t.Fatal(err)
		}
		digests, indexes, boms = append(digests, digest.String()), append(indexes, string(index)), append(boms, string(bom))
	}
	if indexes[0] != indexes[1] || boms[0] != boms[1] {
		t.Errorf("indexes %v, SBOMs %v", indexes, boms)
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

// TestPlatformsTogether: one tag stands for the images of several platforms.
func TestPlatformsTogether(t *testing.T) {
	var images []v1.Image
	for _, platform := range []string{"linux/amd64", "linux/arm64", "linux/arm/v7"} {
		binary := crossed(t, platform)
		image, err := Build(Options{Binary: binary, Platform: platform, Version: "1.2.3"})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	dir := filepath.Join(t.TempDir(), "image")
	if err := Write(dir, "1.2.3", images...); err != nil {
		t.Fatal(err)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	tagged, err := outer.IndexManifest()
	if err != nil || len(tagged.Manifests) != 1 || tagged.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%+v, %v", tagged, err)
	}
	inner, err := outer.ImageIndex(tagged.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64", "linux/arm/v7"}) {
		t.Errorf("platforms %q", platforms)
	}
}

// crossed is what stands for a static program of platform, without compiling one: the
// head of an executable, which is all that is looked at.
func crossed(t *testing.T, platform string) string {
	t.Helper()
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20], head[52], head[54], head[58] = 2, byte(elf.EM_X86_64), 1, 64, 56, 64
	switch platform {
	case "linux/arm64":
		head[18] = byte(elf.EM_AARCH64)
	case "linux/arm/v7":
		head[4], head[18] = 1, byte(elf.EM_ARM)
		head[40], head[42], head[46] = 52, 32, 40 // sizes of a 32-bit file's headers
		head[52], head[54], head[58] = 0, 0, 0
	}
	path := filepath.Join(t.TempDir(), "quayside")
	if err := os.WriteFile(path, head, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSBOM: what a binary is made of is what the toolchain says.
func TestSBOM(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "build")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./build").CombinedOutput(); err != nil {
		t.Fatalf("build a program with dependencies: %v\n%s", err, out)
	}
	text, err := SBOM(binary, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var read bom
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{}
	for _, c := range read.Components {
		refs[c.PURL] = true
	}
	for _, m := range info.Deps {
		if m.Replace == nil && !refs["pkg:golang/"+m.Path+"@"+m.Version] {
			t.Errorf("%s %s is missing", m.Path, m.Version)
		}
	}
	if len(refs) != len(info.Deps)+1 || len(info.Deps) < 3 || read.Metadata.Component.Version != "v1.2.3" || read.Format != "CycloneDX" {
		t.Errorf("%d components of %d modules:\n%s", len(refs), len(info.Deps), text)
	}
	if again, err := SBOM(binary, "v1.2.3"); err != nil || string(again) != string(text) {
		t.Errorf("the same binary gives another SBOM: %v", err)
	}
}
