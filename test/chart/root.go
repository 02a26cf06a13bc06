package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Root returns the folder of the chart, found upwards from the working
// directory: tests and the lab run somewhere inside the repository.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the chart: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		root := filepath.Join(dir, "charts", "quayside")
		_, err := os.Stat(filepath.Join(root, "Chart.yaml"))
		switch {
		case err == nil:
			return root, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("find the chart: %w", err)
		case dir == filepath.Dir(dir):
			return "", fmt.Errorf("find the chart: no charts/quayside in %s or above it: run inside the repository", start)
		}
	}
}
