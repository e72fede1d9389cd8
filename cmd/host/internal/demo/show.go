package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Screen is where the demo tells its story.
type Screen struct {
	Out    io.Writer
	Live   bool // a terminal: bars are redrawn in place
	Colour bool

	decile int // of the last plain line of progress
}

const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func (s *Screen) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.Out, format, args...) }

// paint colours text if the screen has colours.
func (s *Screen) paint(colour, text string) string {
	if !s.Colour {
		return text
	}
	return colour + text + plain
}

// step begins a step of the story.
func (s *Screen) step(title, format string, args ...any) {
	s.decile = 0
	s.printf("%s %s\n", s.paint(bold, fmt.Sprintf("%-9s", title)), fmt.Sprintf(format, args...))
}

// detail adds a line to a step.
func (s *Screen) detail(format string, args ...any) {
	s.printf("%s%s\n", strings.Repeat(" ", 10), fmt.Sprintf(format, args...))
}

// progress shows how much is done: a bar on a terminal, else a line for each tenth.
func (s *Screen) progress(done, total int, what string) {
	const width = 30
	if s.Live {
		n := min(width, width*done/max(1, total))
		bar := s.paint(green, strings.Repeat("█", n)) + strings.Repeat("░", width-n)
		s.printf("\r\x1b[K%s%s %s of %s %s", strings.Repeat(" ", 10), bar, count(done), count(total), what)
		return
	}
	if d := 10 * done / max(1, total); d > s.decile {
		s.decile = d
		s.detail("%s of %s %s", count(done), count(total), what)
	}
}

// endProgress leaves the bar as it is.
func (s *Screen) endProgress() {
	if s.Live {
		s.printf("\n")
	}
}

// verdict shows one check.
func (s *Screen) verdict(c check) {
	mark := s.paint(green, "ok  ")
	if !c.ok() {
		mark = s.paint(red, "FAIL")
	}
	line := fmt.Sprintf("%s %s: %s", mark, c.what, count(c.got))
	if !c.ok() {
		line += ", expected " + count(c.want)
	}
	s.detail("%s", line)
}

// count writes a number as people do: 12,345.
func count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
