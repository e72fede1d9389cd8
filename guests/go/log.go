package longshore

import "strings"

// Level is how much a line of the log matters.
type Level uint32

// The levels, numbered as in wasi:logging.
const (
	LevelTrace Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
	LevelCritical
)

// Log writes a line to the tenant's log. What a handler prints goes there too, without a level.
func Log(level Level, text string) { abiLog(uint32(level), "", strings.ToValidUTF8(text, "\uFFFD")) }
