// Package command is the program: one file per subcommand, and what several of
// them share (flags, the look at a cluster, the family of goroutines that a
// process is).
//
// Only main may import it. It is the one package above the components: it makes
// them, connects them to a source of objects and to the admin endpoint, and
// shows what they say. It decides nothing about addresses or routes itself.
//
// Below it: explain (status and trace), migrate, admin (the endpoint), and
// what `quayside up` needs beyond the components: demo and forward.
//
// It keeps the contract of exit codes (0 done, 1 failed, 2 bad usage or bad
// input) and of the flags; a flag that several commands take is declared once,
// in flags.go. Read command.go first, then up_components.go, which connects
// everything.
package command
