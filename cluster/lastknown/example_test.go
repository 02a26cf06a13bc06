package lastknown_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/lastknown"
	"quayside.io/cluster/snapshot"
)

func Example() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	file, err := lastknown.Encode(&lastknown.Known{
		Of: "speaker of n1", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Parts:   []lastknown.Part{{Kind: snapshot.Node, Whole: true}},
		Objects: []snapshot.Object{node},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	known, err := lastknown.Decode(file)
	fmt.Println(known.Of, known.At.UTC(), known.Objects[0].GetName(), err)

	file[len(file)-1]++
	_, err = lastknown.Decode(file)
	fmt.Println(err)
	// Output:
	// speaker of n1 2026-01-01 00:00:00 +0000 UTC n1 <nil>
	// its checksum is wrong
}
