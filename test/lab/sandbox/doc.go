// Package sandbox turns the calling process into what a container runtime
// would start: the given network namespace, a mount namespace with its own
// small root, the user and the capabilities of the pod's securityContext, and
// then exec.
//
// test/lab writes a Spec, and test/lab/agent is the process that reads it. The lab cannot
// do these steps itself, because a Go process may not change user or capabilities between
// fork and exec.
//
// What holds: a process started with a Root sees nothing of the
// machine but what the Spec names, as an image built FROM scratch does, and
// holds exactly the capabilities listed.
//
// Read spec.go first.
package sandbox
