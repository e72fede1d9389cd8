package limits

import "time"

// Bounds of longshore dev, which builds the consumers of a manifest whenever their sources change.
const (
	BuildDuration    = 10 * time.Minute // of one build command
	BuildOutputBytes = 1 * MiB          // of one build command that are shown
	BuildLineBytes   = 16 * KiB         // of a line of it, above which the line is shown in parts
	BuildsInARow     = 3                // that follow only what changed during the one before

	SourceFolders = 4_096   // that are watched
	SourceFiles   = 20_000  // that are watched
	SourceBytes   = 8 * MiB // of a file, above which its size and time stand for its content

	WatchQuiet = 100 * time.Millisecond // without a change, until changes are looked at
	WatchStorm = 2 * time.Second        // of changes without a pause, until they are looked at all the same
	WatchPoll  = time.Second            // between two looks where the system can't watch
)
