// Package speaker announces the addresses that live on this node. It is the
// component that joins these packages: cluster says what exists, members who is
// alive and who claims what, l2 what the LAN looks like, kubeproxy whether this
// node has its rules; ownership decides from all of it, by announce, what l2 and
// members are to do.
//
// Only command imports it.
//
// It decides nothing itself. Its loop feeds the machine of package ownership with
// what happens, and carries out what that returns. It keeps these promises:
//   - whoever is to stop answering hears of the new claim only when this node
//     answers;
//   - the drivers work until everything is handed over, and one that breaks ends
//     the speaker, so that it is started anew;
//   - a driver that cannot work here (no raw socket) is silent and says why, and
//     the others go on;
//   - when the API server or a watch breaks, everything stays as it is.
//
// A new announcing driver, such as one for another routing protocol, is three cuts.
// Decide: a field of announce.Plan, filled from the compiler's holdings by a function
// that Compile calls (look at decideBGP), with scenarios. Do: a package of floor 3
// beside bgp, with New, Set of a Want, Run, and Watch where it has news; it looks at
// what it has, adds before it removes, and where it cannot work it says so and waits.
// Join: a field of Speaker, made in New, a row of drivers, and Set where the loop
// carries a step out. test/house adds one.
//
// Read speaker.go first, then loop.go and ask.go.
package speaker
