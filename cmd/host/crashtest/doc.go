// Package crashtest kills real hosts with SIGKILL at moments that nobody chose, starts them again, and checks what was
// promised. It holds tests only.
//
// What a host did before it was killed is read from what outlives it: the answers to the test's own publishes, the lines
// that the host wrote to a file, and a copy of its data folder. The guest of these tests writes "begin" when the handling
// of a message begins and "end" when it ends; the host adds the message and the attempt, and writes one more line with the
// verdict once the settlement is durable. A consumer takes one message at a time:
//
//	host's file    delivery            begin       end              delivery            begin
//	data folder          claim recorded                 settlement
//	               ╰─────── claim ───────╯          ╰──── settle ─────╯
//
// So at the moment of a kill
//
//   - a publish is in flight if its request was sent and never answered;
//   - a claim is in flight if the consumer had no message in hand, and the log has recorded a claim that no handling
//     followed, or at least an acknowledged message was waiting for it;
//   - a settle is in flight if a handling ended and no verdict followed.
//
// TestSoak needs no such witness: every payload is different, the consumers chain, and what comes out at the end is counted.
//
// A host drops lines of a tenant whose guests write too many: a tenant that came near that is no witness in that run.
package crashtest
