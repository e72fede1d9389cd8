// Package hook joins package longshore to the packages outcome and batch. A module exports what is in the packages that it
// imports, and it may export one kind of handler; so the exports of the other kinds are in packages of their own.
package hook

// Guest is what package longshore does for the others.
type Guest struct {
	SetOutcome  func(handler any)
	SetBatch    func(handler any)
	Decide      func(message uint32) (result uint32)
	HandleBatch func(messages, count uint32) (result uint32)
	PostReturn  func()
}

// Longshore is set by package longshore when it is initialised, before the packages that import it are.
var Longshore Guest
