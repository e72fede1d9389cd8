package dispatcher

import (
	"strconv"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/longshore/longshore/limits"
)

// guestLog takes the text that a tenant's guests write. It is untrusted: each line is escaped, cut, and counted against
// one rate for the whole tenant, so that a loud guest drowns nothing but its own tenant's lines.
type guestLog struct {
	log     *zap.Logger
	rate    *rate.Limiter
	dropped atomic.Int64 // lines, since one was last let through
}

func newGuestLog(log *zap.Logger, tenant string) *guestLog {
	return &guestLog{
		log:  log.Named("guest").With(zap.String("tenant", tenant)),
		rate: rate.NewLimiter(limits.GuestLogLinesPerSec, limits.GuestLogLinesPerSec),
	}
}

// write logs one line of a guest's stream, with the fields that say which delivery wrote it.
func (g *guestLog) write(stream string, line []byte, fields []zap.Field) {
	if !g.rate.Allow() {
		g.dropped.Add(1)
		return
	}
	own := []zap.Field{zap.String("stream", stream), zap.String("line", escape(line))}
	if n := g.dropped.Swap(0); n > 0 {
		own = append(own, zap.Int64("lines_dropped_before", n))
	}
	g.log.Info("guest wrote", append(own, fields...)...)
}

// escape makes guest bytes fit for a terminal or a log file: whatever doesn't print is written as a Go escape.
func escape(line []byte) string {
	cut := ""
	if len(line) > limits.GuestLogLineBytes {
		line, cut = line[:limits.GuestLogLineBytes], "…"
	}
	quoted := strconv.Quote(string(line))
	return quoted[1:len(quoted)-1] + cut
}
