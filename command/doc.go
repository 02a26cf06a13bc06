// Package command is the program: one file per subcommand, and what several of them share
// (flags, reading a cluster, running the goroutines of a process).
//
// Only main may import it. It is the one package above the components: it makes them, connects
// them to a source of objects and to the admin endpoint, and prints their output. It decides
// nothing about addresses or routes itself.
//
// Below it: explain (status and trace), migrate, admin (the endpoint), and demo and forward,
// which only `quayside up` needs.
//
// A process is a family of tasks (process.go), each with a Run that returns nil once its
// context has ended. Components keep the Runs of their drivers in an errgroup of their own,
// since no folder below both has to do with processes.
//
// It keeps the contract of exit codes (0 done, 1 failed, 2 bad usage or bad input) and of the
// flags; a flag that several commands take is declared once, in flags.go. Read command.go first,
// then up_components.go, which connects everything.
package command
