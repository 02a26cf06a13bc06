package controller

import (
	"slices"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// twins are the reasons by which assign has told of a Service what announce tells by
// this one. Assign knows where the address came from and what to do about it.
func twins(announced string) []string {
	switch announced {
	case "OutsidePools":
		return []string{assign.ReasonForeignAddress, assign.ReasonAddressLeaving}
	case "UnsafeAddress":
		return []string{assign.ReasonNodeAddress}
	}
	return nil
}

// An account is what one compiler finds wrong.
type account struct {
	problems []snapshot.Problem
	of       *snapshot.Cluster
	// writing are the Services about to be written, of which the next account is another.
	writing map[snapshot.Key]struct{}
}

// mayTell reports whether the account of assign that comes next may tell of a Service
// what this one of announce does: it has not seen that cluster yet, is about to write the
// Service, or has written it since.
func (a *account) mayTell(service snapshot.Key, announced *account) bool {
	if a.of == nil || slices.ContainsFunc([]snapshot.Kind{snapshot.Service, snapshot.IPAddressPool, snapshot.Node, snapshot.SpeakerStatus},
		func(k snapshot.Kind) bool { return a.of.Generation(k) < announced.of.Generation(k) }) {
		return true
	}
	was, _ := announced.of.Services.Get(service)
	is, _ := a.of.Services.Get(service)
	_, changes := a.writing[service]
	return changes || was != is
}

// untold returns those of announce's Problems that are not among assign's already, in
// other words: one fact is one line, and one Event. Where assign may yet tell it, it is
// withheld.
func untold(announced, assigned *account) (problems []snapshot.Problem, withheld bool) {
	told := make(map[snapshot.Problem]struct{}, len(assigned.problems))
	for _, p := range assigned.problems {
		told[snapshot.Problem{Object: p.Object, Reason: p.Reason}] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(announced.problems), func(p snapshot.Problem) bool {
		same := twins(p.Reason)
		if len(same) == 0 {
			return false
		}
		if assigned.mayTell(p.Object.Key, announced) {
			withheld = true
			return true
		}
		return slices.ContainsFunc(same, func(reason string) bool {
			_, is := told[snapshot.Problem{Object: p.Object, Reason: reason}]
			return is
		})
	}), withheld
}

// Told returns what assign and announce find wrong in one cluster, one fact once.
func Told(c *snapshot.Cluster, assigned, announced []snapshot.Problem) []snapshot.Problem {
	rest, _ := untold(&account{problems: announced, of: c}, &account{problems: assigned, of: c})
	return slices.Concat(assigned, rest)
}
