// Package speaker announces the addresses of this node. It is the component that joins
// these packages: cluster has the objects, members the live nodes and their claims, l2 the
// interfaces, kubeproxy whether this node has its rules; ownership, which uses announce,
// decides from all of it what l2 and members are to do.
//
// Only command imports it.
//
// It decides nothing itself. Its loop passes events to the machine of package ownership,
// and carries out what that returns. It keeps these promises:
//   - a claim is gossiped only once this node answers for the address, since the node that
//     had it stops then;
//   - the drivers run until all addresses are handed over, and one that fails ends the
//     speaker, so that it is restarted;
//   - a driver that cannot work here (no raw socket) is silent and reports why, and the
//     others go on;
//   - when the API server or a watch fails, everything stays as it is.
//
// A new announcing driver, such as one for another routing protocol, takes three changes.
// Decide: a field of announce.Plan, filled from the compiler's holdings by a function that
// Compile calls (like decideBGP), with scenarios. Do: a package beside bgp, with its line
// "speaker/NAME": 3 in floors() of test/house, and with New, Set of a Want, Run, and Watch
// if it reports changes; it compares with what is there, adds before it removes, and where
// it cannot work it reports that and waits. Join: a field of Speaker, made in New, a row of
// drivers, and Set where the loop carries out a step. test/house adds one.
//
// Read speaker.go first, then loop.go and ask.go.
package speaker
