// Package telemetry makes the host's logger and its metrics.
package telemetry

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger returns a logger that writes lines of format "json" or "console" at level ("debug", "info", "warn", "error")
// or above to w. Control and bidirectional characters in anything logged are escaped, so that untrusted text can neither
// forge a line nor drive a terminal. w needs no lock of its own.
func NewLogger(w io.Writer, level, format string) (*zap.Logger, error) {
	lvl, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log level %q is unknown; use debug, info, warn or error", level)
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.TimeKey, cfg.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	var enc zapcore.Encoder
	switch format {
	case "json":
		enc = zapcore.NewJSONEncoder(cfg)
	case "console":
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		enc = zapcore.NewConsoleEncoder(cfg)
	default:
		return nil, fmt.Errorf("log format %q is unknown; use json or console", format)
	}
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(escaper{w})), lvl)), nil
}

// escaper writes one log entry per Write and makes it one line of visible characters.
type escaper struct{ w io.Writer }

func (e escaper) Write(p []byte) (int, error) {
	if _, err := e.w.Write(Escape(p)); err != nil {
		return 0, fmt.Errorf("write log: %w", err)
	}
	return len(p), nil
}

// Escape returns p with control, format (bidirectional marks among them) and line-separator characters, and bytes that
// are not UTF-8, written as \uXXXX. Tabs and a final newline stay. It returns p itself if there is nothing to escape.
func Escape(p []byte) []byte {
	end := len(p)
	if end > 0 && p[end-1] == '\n' {
		end--
	}
	var out []byte
	for i := 0; i < end; {
		r, n := utf8.DecodeRune(p[i:end])
		if Hidden(r) || r == utf8.RuneError && n == 1 {
			if out == nil {
				out = append(make([]byte, 0, len(p)+16), p[:i]...)
			}
			out = appendEscaped(out, r)
		} else if out != nil {
			out = append(out, p[i:i+n]...)
		}
		i += n
	}
	if out == nil {
		return p
	}
	return append(out, p[end:]...)
}

// Hidden reports whether r has no visible form of its own. A tab has.
func Hidden(r rune) bool {
	return r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// appendEscaped writes r as JSON would: with surrogates beyond the basic plane.
func appendEscaped(out []byte, r rune) []byte {
	if r > 0xFFFF {
		r -= 0x10000
		return fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
	}
	return fmt.Appendf(out, `\u%04x`, r)
}
