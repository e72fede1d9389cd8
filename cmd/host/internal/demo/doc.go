// Package demo shows the whole job on real input, and checks every claim it makes.
//
// It builds the consumers of examples/orders with the Go toolchain, writes the ones of examples/misbehaving, and starts
// its own binary as a host in another process. Then, as story.go tells it:
//
//	orders ──▶ intake ──▶ orders/lines ──▶ ledger ──▶ ledger/entries     (counted at the end, by the ids in the payloads)
//	misbehaving/<name> ──▶ one consumer for each limit                   (all dead-lettered, each with its reason)
//
// The host is killed in the middle of the work and started again. Some orders are refused because of a limit in the
// manifest that is too small; after it is corrected they are redriven. One message carries a context that somebody else
// signed. Everything that is counted is read back from the host over HTTP.
//
// workspace.go prepares the folder, child.go runs the host, orders.go makes the input, misbehave.go and forge.go the rest
// of it, figures.go counts, and show.go prints.
package demo
