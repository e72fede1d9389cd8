// Package rollout keeps what runs on a host, and replaces it.
//
// What runs is a version of each tenant: its consumers, as a manifest has them, each with the digest of its module. A version
// never changes; whatever is done makes another one. Versions and modules are files in the host's data folder:
//
//	format                     "longshore deployments 1"
//	modules/<sha256>           a module, as it was uploaded
//	tenants/<tenant>/<number>  a Version as JSON; the highest number is what runs
//	new-…                      what is being written; removed when the folder is opened
//
// A file is written beside its place, flushed, and moved there; then its folder is flushed. So after a crash a version is there
// or it isn't, and its modules are there before it is.
//
// store.go is the folder, modules.go what is uploaded to it, version.go what is in it, deployer.go what runs, prepare.go what is
// to run, start.go, apply.go, follow.go and rollback.go what changes it, and change.go says what that is.
package rollout
