// Package dispatcher decides what happens to a delivery. It is the only place where delivery policy lives: it claims
// messages from a queue, verifies who published them, runs a guest on each, decides on a verdict, and settles.
//
// # Reading it
//
// shift.go takes what was claimed at once from its claim to its settlements; deliver.go has the steps of one delivery, or of a batch:
// screen.go and fence.go look at what a message asks for, run.go is one call of the guest, divide.go finds the message that breaks
// a batch, settle.go commits what was decided. decide.go is the table of verdicts, a pure function, with answer.go for what a handler
// says of a message. consumer.go is the loop that claims, batch.go says what is claimed together, condition.go and hold.go when.
// workers.go hands the processors out, in turn, fair.go by what tenants ran lately, perform.go has a worker do what a turn is for, and
// leave.go and pause.go interrupt that. budget.go bounds what is in flight, crew.go keeps goroutines. outbox.go admits what a guest
// publishes, immediate.go publishes it at once. request.go and reply.go are requests of guests to each other, inquiries.go those that
// wait. lease.go keeps leases alive. swap.go replaces consumers while the others run, rehearse.go tries one that doesn't run yet.
// convert.go alone turns the types of the queue, the signed context and the guest ABI into each other.
//
// # The life of a delivery
//
//	slots ──► claim ──► verify ──► wait for a worker ──► invoke ──► decide ──► settle
//	            │          │              │                 │          │
//	            │          │ refused      │ stopping        │ panic    ├─ ack      done, with what the guest published
//	            │          └──────────────┴─────────────────┴─────────►├─ retry    hidden for a while, charged
//	            │                                                      ├─ release  given back, not charged
//	            └─ buried: attempts used up                            └─ bury     dead letter, with a reason
//
// At any moment the lease may be lost. Then the guest is stopped, its result is discarded, and nothing is settled: the
// message belongs to another holder.
//
// # Goroutines
//
// Run starts one goroutine for each consumer, and so does Swap; each consumer takes one for each of its claims from a crew that keeps
// them, as workers do, and each claim starts one to extend its leases if one of them is held for longer than half of its time. Each
// waits for those that it started, and Run for those of Swap.
package dispatcher
