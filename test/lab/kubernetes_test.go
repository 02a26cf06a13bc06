package lab

import "testing"

func TestAnotherReleaseOfKubernetes(t *testing.T) {
	for named, want := range map[string]string{"": "", "1.32.3": "1.32.3", "v1.37.1": "1.37.1", "1.32": "error", "latest": "error", "../1.32.3": "error"} {
		t.Setenv(releaseVariable, named)
		got, err := anotherRelease()
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %q, %v, want %q", named, got, err, want)
		}
	}
}

func TestModuleOfAnotherRelease(t *testing.T) {
	const ours = `module quayside.io/test/lab/kube

require (
	github.com/spf13/cobra v1.10.2
	k8s.io/component-base v0.36.3
	k8s.io/kubernetes v1.36.3
)

require (
	k8s.io/klog/v2 v2.140.0 // indirect
)

replace (
	k8s.io/api => k8s.io/api v0.36.3
)
`
	const want = `module quayside.io/test/lab/kube

require (
	github.com/spf13/cobra v1.10.2
	k8s.io/component-base v0.32.3
	k8s.io/kubernetes v1.32.3
)

require (
)

replace (
	k8s.io/api => k8s.io/api v0.32.3
)
`
	if got := moduleOf(ours, "1.32.3"); got != want {
		t.Errorf("it is\n%s", got)
	}
}
