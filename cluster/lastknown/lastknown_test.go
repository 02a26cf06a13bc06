package lastknown

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

func known() *Known {
	port, ready := int32(8080), true
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &Known{
		Of: "https://10.0.0.1 proxy", At: time.UnixMilli(1700000000123),
		Parts: []Part{
			{Kind: snapshot.Service, Whole: true},
			{Kind: snapshot.SpeakerStatus},
			{Kind: snapshot.Secret, Key: snapshot.Key{Namespace: "shop", Name: "tls"}, Whole: true},
		},
		Objects: []snapshot.Object{
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: at, Annotations: map[string]string{"a": "ü\n"}},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
			&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, AddressType: discoveryv1.AddressTypeIPv4,
				Ports:     []discoveryv1.EndpointPort{{Port: &port}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}},
			&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "shop.example"}}}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Data: map[string][]byte{"tls.key": {0, 1, 255}}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			&v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: at}, Status: v1alpha1.SpeakerStatusStatus{
				Announcing: []v1alpha1.Announcing{{Service: "shop/web", Address: "10.0.0.9", Protocol: "l2", Epoch: 7}}}},
		},
	}
}

func encoded(t testing.TB, k *Known) []byte {
	t.Helper()
	b, err := Encode(k)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is written is what is read, whatever encodes the kind.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for name, k := range map[string]*Known{"all": known(), "nothing": {At: time.UnixMilli(0)}} {
		got, err := Decode(encoded(t, k))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(k, got); diff != "" {
			t.Errorf("%s: -written +read\n%s", name, diff)
		}
	}
}

// seal gives a body the head that a reader believes.
func seal(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(append([]byte(magic), sum[:]...), body...)
}

// A file with one wrong bit is refused, as is one that was cut anywhere; and where
// somebody made the checksum fit, what is read is whole or refused.
func TestADamagedFileIsRefused(t *testing.T) {
	good := encoded(t, known())
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if _, err := Decode(bad); err == nil {
			t.Fatalf("byte %d is wrong, and the file is read", i)
		}
		if _, err := Decode(good[:i]); err == nil {
			t.Fatalf("cut after %d bytes, and the file is read", i)
		}
	}
	body := good[len(magic)+sha256.Size:]
	whole := len(known().Objects)
	for i := range body {
		if k, err := Decode(seal(body[:i])); err == nil && len(k.Objects) >= whole {
			t.Fatalf("cut after %d bytes of the body, and all is there", i)
		}
	}
}

func TestWhatNobodyWroteIsRefused(t *testing.T) {
	head := append(make([]byte, 8), 0) // when, and of whom
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	text := func(s string) []byte { return appendText(nil, s) }
	nameless, err := (&corev1.Service{}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	placed, err := (&corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "n1"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body []byte
		want string
	}{
		"nothing":              {nil, "too soon"},
		"more parts than bits": {append(bytes.Clone(head), huge...), "too soon"},
		"endless text":         {append(make([]byte, 8), huge...), "too soon"},
		"another kind":         {append(append(bytes.Clone(head), 0), text("Gateway")...), "not known"},
		"no object":            {append(append(append(bytes.Clone(head), 0), text("Service")...), text("\xff\xff")...), "Service"},
		"no JSON":              {append(append(append(bytes.Clone(head), 0), text("SpeakerStatus")...), text("{")...), "SpeakerStatus"},
		"without a name":       {append(append(append(bytes.Clone(head), 0), text("Service")...), text(string(nameless))...), "called"},
		"where none is":        {append(append(append(bytes.Clone(head), 0), text("Node")...), text(string(placed))...), "called"},
	} {
		if _, err := Decode(seal(tt.body)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := Decode(append([]byte("quayside last known 9\n"), make([]byte, 100)...)); err == nil || !strings.Contains(err.Error(), "format") {
		t.Errorf("a format to come: %v", err)
	}
}

// FuzzDecode: whatever the file holds, reading ends, and what is read is written as
// it was.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, known())[len(magic)+sha256.Size:])
	f.Add(encoded(f, &Known{At: time.UnixMilli(1)})[len(magic)+sha256.Size:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		k, err := Decode(seal(body))
		if err != nil {
			return
		}
		again, err := Decode(encoded(t, k))
		if err != nil {
			t.Fatalf("what was read does not read again: %v", err)
		}
		if fmt.Sprint(len(k.Objects), k.Parts, k.At, k.Of) != fmt.Sprint(len(again.Objects), again.Parts, again.At, again.Of) {
			t.Errorf("%d objects, %v became %d, %v", len(k.Objects), k.Parts, len(again.Objects), again.Parts)
		}
	})
}
