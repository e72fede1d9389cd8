package dispatcher

import (
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/longshore/longshore/limits"
)

// guestLog takes the text that a tenant's guests write. It is untrusted: each line is escaped, cut, and counted against
// rates for the whole tenant, so that a loud guest drowns nothing but its own tenant's lines.
type guestLog struct {
	log     *zap.Logger
	rate    *rate.Limiter // of lines
	bytes   *rate.Limiter // of what is written, before it is escaped and cut
	dropped atomic.Int64  // lines, since one was last let through
	lost    atomic.Int64  // bytes of all lines that were dropped
}

// newGuestLog makes the log of a tenant, within its caps.
func newGuestLog(log *zap.Logger, tenant string, caps Caps) *guestLog {
	return &guestLog{
		log:   log.Named("guest").With(zap.String("tenant", tenant)),
		rate:  rate.NewLimiter(limits.GuestLogLinesPerSec, limits.GuestLogLinesPerSec),
		bytes: caps.logBytes(),
	}
}

// write logs one line of a guest's stream, with the fields that say which delivery wrote it.
func (g *guestLog) write(stream string, line []byte, fields []zap.Field) {
	n := min(len(line), limits.GuestLogLineBytes)
	if !g.bytes.AllowN(time.Now(), n) || !g.rate.Allow() {
		g.dropped.Add(1)
		g.lost.Add(int64(n))
		return
	}
	own := []zap.Field{zap.String("stream", stream), zap.String("line", escape(line))}
	if dropped := g.dropped.Swap(0); dropped > 0 {
		own = append(own, zap.Int64("lines_dropped_before", dropped))
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
