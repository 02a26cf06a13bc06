// Package assign decides which Service gets which address, and every status
// that follows from it: the addresses, annotation and condition of Services,
// the addresses of Ingresses, the counters and conditions of pools.
//
// Package controller calls Compile whenever something changed, writes
// Plan.Updates, sends the Event of each that was written, and reports
// Plan.Problems. What holds:
//
//   - An address in any status, or in a write of unknown outcome, is never given
//     to a second Service that may not share it. What a plan takes away it gives
//     to nobody: the next plan does, once the snapshot shows that it is gone.
//   - An address that is in status and legal stays, until its Service can have another
//     that it asks for. Rules about who may have an address (selectors, drain, reserved)
//     bar new assignments only.
//   - We take away only what we gave: the annotation ip-allocated-from-pool says so.
//   - The same arguments give the same plan, and a plan that took nothing
//     away is a fixed point once applied.
//   - A freed address rests for its pool's reuseAfter, whoever leads: the status
//     of the pool says what rests, and what a speaker still announces although
//     no Service has it rests from the beginning of a term.
//
// Compile works everything out from the snapshot alone; what it remembers from
// prev is which addresses were freed when, and consumers it need not parse again.
//
// Read plan.go first, then consumer.go (what a Service asks for), keep.go (what
// stays), serve.go (who waits), swap.go (who changes places), update.go (what is written),
// rest.go (what was freed).
package assign
