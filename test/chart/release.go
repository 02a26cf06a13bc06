package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Release is one revision of an installation from a packed chart.
type Release struct {
	// CRDs of the chart: Helm installs them with the first revision only.
	CRDs []*unstructured.Unstructured
	// Objects in the order in which Helm installs them.
	Objects []*unstructured.Unstructured

	options chartutil.ReleaseOptions
	chart   *chart.Chart
	given   map[string]any // beside the values of the chart
}

// Pack makes an archive of charts/quayside in a folder, as `helm package` does, and
// returns its path. The chart says of itself and of the image that they are of a
// version, v1.2.3; "": of those in Chart.yaml.
func Pack(folder, version string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	c, err := loader.LoadDir(root)
	if err != nil {
		return "", fmt.Errorf("load chart %s: %w", root, err)
	}
	if version != "" {
		c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(version, "v"), version
		if err := c.Validate(); err != nil {
			return "", fmt.Errorf("version %q: %w", version, err)
		}
	}
	archive, err := chartutil.Save(c, folder)
	if err != nil {
		return "", err
	}
	return archive, timeless(archive)
}

// timeless takes out of an archive when it was made, so that the same chart gives the same
// bytes.
func timeless(archive string) error {
	data, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	compressed.Header = packed.Header // by which Helm knows its archives
	compressed.ModTime = time.Time{}
	from, to := tar.NewReader(packed), tar.NewWriter(compressed)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		header.ModTime = time.Unix(0, 0)
		if err := to.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(to, from); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	if err := errors.Join(to.Close(), compressed.Close()); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o644)
}

// NewRelease is what `helm install NAME ARCHIVE -n NAMESPACE` makes with these values.
func NewRelease(name, namespace, archive string, values map[string]any) (*Release, error) {
	r := &Release{options: chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}, given: values}
	if err := r.load(archive); err != nil {
		return nil, err
	}
	return r, r.render(engine.Engine{})
}

// Upgrade is what `helm upgrade --reuse-values NAME ARCHIVE` makes of a release: the
// values of the older one, its chart's included, and none of the new chart. Templates
// may ask the cluster.
func (r *Release) Upgrade(archive string, cluster *rest.Config) (*Release, error) {
	next := &Release{options: r.options, given: r.given}
	next.options.IsInstall, next.options.IsUpgrade = false, true
	next.options.Revision++
	if err := next.load(archive); err != nil {
		return nil, err
	}
	reused, err := chartutil.CoalesceValues(r.chart, r.given)
	if err != nil {
		return nil, fmt.Errorf("values of revision %d: %w", r.options.Revision, err)
	}
	next.chart.Values = reused
	return next, next.render(engine.New(cluster))
}

func (r *Release) load(archive string) (err error) {
	if r.chart, err = loader.Load(archive); err != nil {
		return fmt.Errorf("load chart %s: %w", archive, err)
	}
	r.CRDs, err = decodeAll(crdFiles(r.chart))
	return err
}

func (r *Release) render(by engine.Engine) error {
	files, err := renderChart(r.chart, r.options, r.given, by)
	if err != nil {
		return err
	}
	r.Objects, err = inOrder(files)
	return err
}

// UninstallOrder returns the objects in the order in which Helm deletes them.
func UninstallOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	place := func(o *unstructured.Unstructured) int {
		if i := slices.Index(releaseutil.UninstallOrder, o.GetKind()); i >= 0 {
			return i
		}
		return len(releaseutil.UninstallOrder) // what Helm does not know goes last
	}
	return slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int { return place(a) - place(b) })
}
