package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What the image is, as the Dockerfile says too.
const (
	Binary = "/quayside"
	User   = "65532:65532"
)

// Options of an image.
type Options struct {
	// Binary is a static executable for Platform.
	Binary string
	// Platform as "linux/amd64" or "linux/arm/v7".
	Platform string
	// Version becomes the label org.opencontainers.image.version.
	Version string
}

// Build returns the image.
func Build(o Options) (v1.Image, error) {
	platform, err := v1.ParsePlatform(o.Platform)
	if err != nil || platform.OS == "" || platform.Architecture == "" {
		return nil, fmt.Errorf("image: platform %q: want one like linux/amd64", o.Platform)
	}
	data, err := os.ReadFile(o.Binary)
	if err != nil {
		return nil, fmt.Errorf("image: read the binary: %w", err)
	}
	if err := static(data, platform.Architecture); err != nil {
		return nil, fmt.Errorf("image: %s: %w", o.Binary, err)
	}
	files, err := archive(data)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{CreatedBy: "COPY quayside " + Binary},
	})
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Config = v1.Config{
		User:       User,
		Entrypoint: []string{Binary},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "quayside",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  o.Version,
		},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return image, nil
}

// static refuses what would not start in an empty root: the kernel reports a
// missing loader as "no such file", long after the image was built.
func static(binary []byte, architecture string) error {
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("not a Linux executable: %w", err)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM, "riscv64": elf.EM_RISCV, "s390x": elf.EM_S390, "ppc64le": elf.EM_PPC64}
	if want, ok := machines[architecture]; !ok || file.Machine != want {
		return fmt.Errorf("built for %s, not for %s", file.Machine, architecture)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("needs a dynamic loader: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// archive returns the image's files: one.
func archive(binary []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(Binary, "/"), Mode: 0o555, Size: int64(len(binary)),
		ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatUSTAR,
	}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Write stores images, each for a platform of its own, as an OCI layout in folder dir,
// which it replaces. All of them together are tagged tag: one stands there as it is,
// several as an index.
func Write(dir, tag string, images ...v1.Image) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("image: clear %s: %w", dir, err)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("image: write %s: %w", dir, err)
	}
	tagged := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})
	if len(images) == 1 {
		err = path.AppendImage(images[0], tagged)
	} else {
		var index v1.ImageIndex
		if index, err = together(images); err == nil {
			err = path.AppendIndex(index, tagged)
		}
	}
	if err != nil {
		return fmt.Errorf("image: write %s: %w", dir, err)
	}
	return nil
}

// together returns an index of images, by their platforms.
func together(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	return index, nil
}
