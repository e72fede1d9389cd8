// Package substrate is the durable log: publish, claim under a lease, settle, dead letters, policy, counters. It takes
// bytes and gives bytes; it knows nothing of WebAssembly or of signed contexts.
//
// # How it is built
//
// Everything that happens is a frame: publish, claim, settle (with what the guest published), extend, pause, policy,
// redrive, discard. One goroutine, the committer, turns requests into frames (the plan functions: pure decisions over the
// state), applies them to the state in memory (apply: deterministic, no clock, no I/O), writes the group to the journal
// with one fsync, and only then answers. Behind it the write-behind carries the effects into Badger; what was published
// and acknowledged before its turn came never reaches the store. Recovery loads the state from the store and runs apply
// over the frames that came after.
//
//	Publish ─┐                                   ┌─> answers, wake-ups
//	Claim   ─┼─> committer: plan -> apply -> journal (fsync)
//	Settle  ─┘                    │
//	                              └─> effects ─> write-behind ─> Badger
//
// Because the state runs ahead of the disk by the group being written, an error of the journal is final: the log stops
// (see Log.Err), nobody is answered, and the next Open recovers what was durable.
//
// # Reading the source
//
// log.go opens and closes, recover.go does what Open has to, mark.go knows where the journal has to end; committer.go is the
// loop above; publish.go, claim.go, settle.go, dead.go, topics.go and groups.go hold the calls, each with the function that
// decides its frame (plan.go, of a claim); frame.go is the format; apply.go changes the state of state.go, whose parts are
// lane.go, stream.go and ordering.go; fences.go keeps the fence marks of lanes; values.go reads and commits
// the values that guests keep, and values_state.go knows when they changed; effects.go gathers what the store is owed and
// writebehind.go writes it; lookup.go reads messages back; ready.go wakes claimers; chores.go drops what nobody needs;
// caps.go and usage.go bound and count what a tenant keeps, and erase.go deletes a tenant; running.go notes what is being handled, and suspect.go what a crash makes of it; backup.go writes the log to a stream,
// and restore.go makes one of that.
package substrate
