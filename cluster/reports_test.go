package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
)

// Of one object and reason there is one text at a time, however many Problems come, and
// however often they change; about what does not exist there is none.
func TestReportsAreFew(t *testing.T) {
	var r Reports
	web, gone := snapshot.Ref{Kind: "Service", Key: snapshot.Key{Name: "web"}}, snapshot.Ref{Kind: "Service", Key: snapshot.Key{Name: "gone"}}
	exists := func(ref snapshot.Ref) bool { return ref == web }
	now, told := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC), []string{}
	for i := range 3600 {
		now = now.Add(time.Second)
		for _, p := range r.Fresh(Joined([]snapshot.Problem{
			{Object: web, Reason: "InUse", Message: fmt.Sprint("mac ", i)}, {Object: gone, Reason: "InUse", Message: "nobody"},
			{Object: web, Reason: "InUse", Message: "and another"}, {Object: web, Reason: "Waits", Message: "why"},
		}), now, exists) {
			told = append(told, p.String())
		}
	}
	few := ReportTimes + int(time.Hour/ReportAgain)
	if len(told) < few/2 || len(told) > few+1 {
		t.Errorf("%d Events within an hour", len(told))
	}
	if told[0] != "Service web: InUse: mac 0; and another" || told[1] != "Service web: Waits: why" || strings.Contains(strings.Join(told[2:], " "), "Waits") {
		t.Errorf("told %q", told[:5])
	}
}
