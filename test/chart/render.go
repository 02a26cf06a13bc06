package chart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Render returns what `helm install RELEASE charts/quayside -n NAMESPACE`
// would send to the API server: the CRDs, which go first, and the other
// objects in the order in which Helm installs them. Values override
// values.yaml and must satisfy values.schema.json.
func Render(release, namespace string, values map[string]any) (crds, objects []*unstructured.Unstructured, err error) {
	files, crdFiles, err := render(release, namespace, values)
	if err != nil {
		return nil, nil, err
	}
	if crds, err = decodeAll(crdFiles); err != nil {
		return nil, nil, err
	}
	objects, err = inOrder(files)
	return crds, objects, err
}

// inOrder decodes rendered files in the order in which Helm installs them.
func inOrder(files map[string]string) (objects []*unstructured.Unstructured, err error) {
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Ext(name) != ".yaml" })
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("sort the chart's manifests: %w", err)
	}
	if len(hooks) > 0 {
		return nil, fmt.Errorf("the chart has a hook (%s): an installation must not depend on one", hooks[0].Path)
	}
	for _, manifest := range manifests {
		docs, err := decode(manifest.Name, []byte(manifest.Content))
		if err != nil {
			return nil, err
		}
		objects = append(objects, docs...)
	}
	return objects, nil
}

// Notes returns what Helm prints after an installation.
func Notes(release, namespace string, values map[string]any) (string, error) {
	files, _, err := render(release, namespace, values)
	if err != nil {
		return "", err
	}
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			return text, nil
		}
	}
	return "", errors.New("the chart has no NOTES.txt")
}

type crdFile struct {
	name string
	data []byte
}

func render(release, namespace string, values map[string]any) (map[string]string, []crdFile, error) {
	root, err := Root()
	if err != nil {
		return nil, nil, err
	}
	c, err := loader.LoadDir(root)
	if err != nil {
		return nil, nil, fmt.Errorf("load chart %s: %w", root, err)
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	files, err := renderChart(c, options, values, engine.Engine{Strict: true})
	return files, crdFiles(c), err
}

func renderChart(c *chart.Chart, options chartutil.ReleaseOptions, values map[string]any, by engine.Engine) (map[string]string, error) {
	merged, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return nil, fmt.Errorf("values for chart %s: %w", c.Metadata.Version, err)
	}
	files, err := by.Render(c, merged)
	if err != nil {
		return nil, fmt.Errorf("render chart %s: %w", c.Metadata.Version, err)
	}
	return files, nil
}

func crdFiles(c *chart.Chart) (files []crdFile) {
	for _, crd := range c.CRDObjects() {
		files = append(files, crdFile{crd.Filename, crd.File.Data})
	}
	slices.SortFunc(files, func(a, b crdFile) int { return strings.Compare(a.name, b.name) })
	return files
}

func decodeAll(files []crdFile) (objects []*unstructured.Unstructured, err error) {
	for _, file := range files {
		docs, err := decode(file.name, file.data)
		if err != nil {
			return nil, err
		}
		objects = append(objects, docs...)
	}
	return objects, nil
}

// decode splits a file into its objects.
func decode(name string, data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		object := map[string]any{}
		// Strict: two keys of one name would otherwise hide one another.
		if err := yaml.UnmarshalStrict(doc, &object); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, doc)
		}
		if len(object) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: object})
		}
	}
}
