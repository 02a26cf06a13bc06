package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume is a Secret seen as files, kept up to date by the pod's kubelet.
type volume struct {
	secret   string
	dir      string // on the machine; the pod sees it at its mountPath
	optional bool
	version  string // resourceVersion of what is in dir
}

// refresh brings the pod's volumes up to date.
func (p *pod) refresh(ctx context.Context) error {
	for i := range p.volumes {
		v := &p.volumes[i]
		var from metav1.GetOptions
		if v.version != "" {
			from.ResourceVersion = "0" // from memory: to look often is to cost little
		}
		secret, err := p.core.client.CoreV1().Secrets(p.namespace).Get(ctx, v.secret, from)
		if apierrors.IsNotFound(err) && v.optional {
			continue
		}
		if err != nil {
			return fmt.Errorf("lab: volume of pod %s: %w", p.name, err)
		}
		if secret.ResourceVersion == v.version {
			continue
		}
		if err := writeVolume(v.dir, secret.ResourceVersion, secret.Data); err != nil {
			return fmt.Errorf("lab: volume of pod %s: %w", p.name, err)
		}
		v.version = secret.ResourceVersion
	}
	return nil
}

// writeVolume replaces the files of a volume as a kubelet does: they are
// links into ..data, a link that one rename turns to the new folder, so that
// a reader sees either all of the old or all of the new.
func writeVolume(dir, version string, data map[string][]byte) error {
	old, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	current := "..v" + version
	if err := os.MkdirAll(filepath.Join(dir, current), 0o755); err != nil {
		return err
	}
	for key, value := range data {
		if err := os.WriteFile(filepath.Join(dir, current, key), value, 0o444); err != nil {
			return err
		}
	}
	turn := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(current, turn); err != nil {
		return err
	}
	if err := os.Rename(turn, filepath.Join(dir, "..data")); err != nil {
		return err
	}
	for key := range data {
		err := os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if old == "" || old == current {
		return nil
	}
	gone, err := os.ReadDir(filepath.Join(dir, old))
	if err != nil {
		return err
	}
	for _, e := range gone {
		if _, kept := data[e.Name()]; !kept {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

// writeToken writes the files of the pod's ServiceAccount: a token that is
// bound to this very pod, as a kubelet asks for, the CA and the namespace.
func (p *pod) writeToken(ctx context.Context, account, dir string) error {
	day := int64(24 * 60 * 60) // longer than any lab: it need not be renewed
	request, err := p.core.client.CoreV1().ServiceAccounts(p.namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &day,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.name, UID: p.uid},
		}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("lab: token of pod %s: %w", p.name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for name, text := range map[string]string{
		"token": request.Status.Token, "ca.crt": string(p.core.api.pki.caPEM), "namespace": p.namespace,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o444); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return nil
}
