package chart

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RenderIn is Render for the chart of somebody else in a folder.
func RenderIn(folder, release, namespace string, values map[string]any) ([]*unstructured.Unstructured, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", folder, err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("chart %s: %w", folder, err)
	}
	files, err := renderChart(c, chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, values, engine.Engine{})
	if err != nil {
		return nil, err
	}
	return inOrder(files)
}
