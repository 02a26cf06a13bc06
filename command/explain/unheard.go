package explain

import (
	"fmt"
	"slices"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// announcement is one address that a node says it answers for.
type announcement struct{ node, address string }

// unheardBy are those of the living that do not hear an announcement on their LAN, though
// they hear the node.
func unheardBy(live []*v1alpha1.SpeakerStatus) map[announcement][]string {
	by := map[announcement][]string{}
	for _, status := range live {
		for _, u := range status.Status.Unheard {
			if a := (announcement{u.Node, u.Address}); u.Node != status.Name && !slices.Contains(by[a], status.Name) {
				by[a] = append(by[a], status.Name)
			}
		}
	}
	return by
}

// filtered says that the network drops what is announced.
func filtered(announced string, by []string) string {
	return fmt.Sprintf("%s, which %s cannot hear on the same LAN: something in the network drops what it answers; %s",
		announced, listed(by, 3), announce.AllowAddresses)
}

// unheard are the announcements that the network filters: one Problem for each node.
func unheard(live []*v1alpha1.SpeakerStatus) (problems []snapshot.Problem) {
	misses := unheardBy(live)
	if len(misses) == 0 {
		return nil
	}
	for _, status := range live {
		var addresses, nodes []string
		for _, a := range status.Status.Announcing {
			who := misses[announcement{status.Name, a.Address}]
			if len(who) == 0 || slices.Contains(addresses, a.Address) {
				continue
			}
			addresses, nodes = append(addresses, a.Address), append(nodes, who...)
		}
		if len(addresses) == 0 {
			continue
		}
		problems = append(problems, snapshot.Problem{
			Object: snapshot.Ref{Kind: snapshot.Node.String(), Key: snapshot.Key{Name: status.Name}}, Reason: announce.ReasonUnheard,
			Message: filtered("it announces "+names(addresses, 5), nodes),
		})
	}
	return problems
}
