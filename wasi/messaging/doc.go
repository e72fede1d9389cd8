// Package messaging is the guest ABI: what a WebAssembly module imports from Longshore and exports to it.
//
// Guests are core modules whose imports and exports carry the canonical-ABI-lowered names of WIT interfaces, as ordinary
// bindings generators emit them, in one of two manglings (names.go). wit/ has the WIT, and docs/guest-abi.md draws it all:
//
//	import  wasi:messaging/types, producer, request-reply    client, message, send, request, reply
//	import  longshore:messaging/publisher, delivery          publish, publish-batch, publish-atomic, info, …
//	import  wasi:logging, wasi:config, WASI 0.2              what is granted beside messaging
//	import  wasi:keyvalue/store                              values, in the transaction of the call
//	export  batch-handler, outcome-handler or incoming-handler
//	export  memory, cabi_realloc, and optionally _initialize and a post-return function
//
// Bind links a module to the functions that it imports, and finds its handler. Call is one call of that handler.
//
// Values cross the border as the canonical ABI lays them out in linear memory, little-endian. Functions whose result
// doesn't fit one register are given a pointer to a return area as their last parameter:
//
//	string, list<T>      | ptr u32 | len u32 |
//	option<string>       | some u8, 3 pad | ptr u32 | len u32 |
//	result<_, error>     | err u8, 3 pad | case u8, 3 pad | ptr u32 | len u32 |
//	outgoing             | topic ptr, len | message handle u32 | 4 pad | option<publish-options> |
//
// shape.go computes such layouts from a description of the types, and types.go describes them; no offset is written
// by hand.
//
// Resources (clients, messages) are numbers into a table that belongs to one call. Handle 0 never exists. Everything
// of a delivery ends with its call.
//
// What a guest publishes joins the outbox of its Call. Nothing leaves this package by itself: whoever runs the call
// reads the outbox afterwards, and commits it or forgets it, or is asked to publish each message at once.
//
// So it is with values: what a guest writes goes to the Store that the call was given, and that keeps it back.
//
// Three kinds of failure are told apart. What a guest may cause in good faith (a full topic, a missing grant) is an
// error value of the WIT. What breaks the ABI ends the call with *ABIError. What exceeds a bound that only floods reach
// ends it with *limits.Error. The latter two travel as panics through the guest's frames, and are returned by Handle.
package messaging
