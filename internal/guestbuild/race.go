//go:build race

package guestbuild

const raceEnabled = true
