// Package guestbuild builds guests from source for tests, with the toolchain of their language.
//
// Where a toolchain is missing, what needs it is skipped by name, so that the tests pass on a machine that has Go alone. Where
// the environment says that all toolchains are to be there (CI, or LONGSHORE_REQUIRE_TOOLCHAINS=1), it fails instead.
package guestbuild
