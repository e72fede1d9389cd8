// Package guests holds the SDKs, one folder a language, as files that are built into the program, so that a new consumer
// needs no network. The SDK for Go is a module of its own, which can't be embedded from here.
package guests

import "embed"

// SDKs are the files of the SDKs that consumers need, in a folder for each language.
//
//go:embed c/longshore.h rust/Cargo.toml rust/src/*.rs
//go:embed assemblyscript/package.json assemblyscript/asconfig.json assemblyscript/transform.mjs assemblyscript/*.ts assemblyscript/assembly/*.ts
//go:embed javascript/package.json javascript/*.js javascript/bin/build.mjs javascript/wit
var SDKs embed.FS
