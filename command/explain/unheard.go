package explain

import (
	"fmt"
	"slices"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// reasonUnheard is that of the Events by which speakers tell the same.
const reasonUnheard = "AddressUnheard"

// announcement is one address that a node says it answers for.
type announcement struct{ node, address string }

// unheardBy are the live nodes that do not hear an announcement on their LAN, though they
// hear the node.
func unheardBy(c *snapshot.Cluster, missed map[string]struct{}) map[announcement][]string {
	by := map[announcement][]string{}
	for _, status := range c.SpeakerStatuses.Sorted() {
		if _, dead := missed[status.Name]; dead || isOrphan(c, status) {
			continue
		}
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
		announced, names(by, 3), announce.AllowAddresses)
}

// unheard are the announcements that the network filters: one Problem for each node.
func unheard(c *snapshot.Cluster) (problems []snapshot.Problem) {
	missed := announce.Missed(c)
	misses := unheardBy(c, missed)
	if len(misses) == 0 {
		return nil
	}
	for _, status := range c.SpeakerStatuses.Sorted() {
		if _, dead := missed[status.Name]; dead || isOrphan(c, status) {
			continue
		}
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
		slices.Sort(nodes)
		problems = append(problems, snapshot.Problem{
			Object: snapshot.Ref{Kind: snapshot.Node.String(), Key: snapshot.Key{Name: status.Name}}, Reason: reasonUnheard,
			Message: filtered("it announces "+names(addresses, 5), slices.Compact(nodes)),
		})
	}
	return problems
}
