package cluster

import (
	"fmt"
	"io/fs"

	"quayside.io/cluster/manifest"
)

// readEmbedded reads every manifest in embedded file systems. These are ours,
// so that a fault in one is an error.
func readEmbedded(all []fs.FS) (origins []*origin, err error) {
	for _, files := range all {
		read, err := readFS(files)
		if err != nil {
			return nil, err
		}
		origins = append(origins, read...)
	}
	for i, o := range origins {
		o.group = i - len(origins) // before the files, after what the program puts
	}
	return origins, nil
}

func readFS(files fs.FS) ([]*origin, error) {
	var origins []*origin
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isManifest(d.Name()) {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		r := manifest.Decode(path, text)
		if len(r.Errors) > 0 {
			return fmt.Errorf("embedded manifest %s", r.Errors[0])
		}
		origins = append(origins, &origin{name: path, objects: stripAll(r.Objects)})
		return nil
	})
	return origins, err
}
