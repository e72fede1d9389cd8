// Package dev keeps the consumers of a running host up to date with their sources.
//
// # One round
//
//	something changes ──► quiet ──► look ──► whose is it? ──► build those ──► read modules ──► deploy
//	                                 ▲                                                          │
//	                                 └────────── did anything change meanwhile? ◄───────────────┘
//
// The system's notices of changes (fsnotify) only wake a round. What changed is what differs between two looks at the files,
// by their content. So it doesn't matter how an editor saves, what a storm of notices leaves out, or which folders are new.
//
// # Whose sources they are
//
// A manifest says how a consumer is built, and not from what. Nearly always the command names it: folders.go finds the
// folders that a command names. A file in such a folder belongs to the consumers whose commands name the folder; one that
// lies in no such folder belongs to all. A module that no command builds belongs to its consumer.
//
// # What a build writes
//
// Builds write into the folders that are watched. The modules, and some names of folders and files, are never sources
// (ignore.go). What changes during a build may be the build's doing, or that of a person: so it is built again. After
// limits.BuildsInARow builds that only followed each other, what changed during the last one is taken for its output, and
// counts again when it changes while nothing is built.
//
// # What runs
//
// A consumer whose build fails, or whose module can't run, goes on with the version that it had. If it had none, it is left
// out. So does everything if the manifest is faulty.
package dev
