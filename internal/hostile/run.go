package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// Bounded are limits under which every module ends soon, however slow the machine: by fuel rather than by time. Those that
// fuel can't stop end by WaitDuration.
func Bounded() limits.Guest {
	g := limits.DefaultGuest()
	g.Fuel, g.CallDuration = 20_000_000, 30*time.Second
	return g
}

// WaitDuration is the time of a call, under Bounded's limits, of a module that fuel can't stop; and StopDuration is that of
// Timed.
const (
	WaitDuration = time.Second
	StopDuration = 50 * time.Millisecond
)

// Timed are limits under which what is endless ends by time alone.
func Timed() limits.Guest {
	g := limits.DefaultGuest()
	g.Fuel, g.HostCalls, g.CallDuration = 1<<60, 1<<60, StopDuration
	return g
}

// Verdict is what became of a module.
type Verdict struct {
	Stage   runtime.Stage // at which it was refused; "" if it was deployed
	Limit   limits.Name   // the bound of the refusal; "" if none
	Problem string        // the text of the refusal

	Ended   string        // the reason of the bounded call
	Stopped string        // the reason of the timed call of an endless module
	Deploy  time.Duration // that it took to compile, or to refuse
	Overrun time.Duration // that the timed call took beyond its time
}

// Run deploys m on e and calls it: once under Bounded's limits, and if it is endless, once more under Timed's. The error is
// about the engine, never about m.
func Run(ctx context.Context, e *runtime.Engine, m Module) (v Verdict, err error) {
	module, err := deploy(ctx, e, m, &v)
	if module == nil {
		return v, err
	}
	defer func() { err = errors.Join(err, module.Close(ctx)) }()
	m.call(ctx, module, &v)
	return v, nil
}

// limits are those that m is deployed and first called with.
func (m *Module) limits() limits.Guest {
	g := Bounded()
	if m.Ends == "timeout" {
		g.CallDuration = WaitDuration
	}
	if m.Change != nil {
		m.Change(&g)
	}
	return g
}

// deploy compiles m, and returns nil if it is refused.
func deploy(ctx context.Context, e *runtime.Engine, m Module, v *Verdict) (*runtime.Module, error) {
	wasm := m.Wasm()
	started := time.Now()
	module, err := e.Compile(ctx, "hostile", wasm, m.limits())
	v.Deploy = time.Since(started)
	if err != nil {
		return nil, v.refused(err)
	}
	return module, nil
}

// call calls the module as Run says.
func (m *Module) call(ctx context.Context, module *runtime.Module, v *Verdict) {
	v.Ended = module.Invoke(ctx, newCall(m.limits())).Reason()
	if m.Endless {
		v.Stopped, v.Overrun = stop(ctx, module)
	}
}

// stop calls an endless module under Timed's limits, and returns how it ended and how late.
func stop(ctx context.Context, module *runtime.Module) (reason string, late time.Duration) {
	started := time.Now()
	reason = module.Invoke(ctx, newCall(Timed())).Reason()
	return reason, time.Since(started) - StopDuration
}

// refused notes why a module was refused. Other errors are returned.
func (v *Verdict) refused(err error) error {
	var refusal *runtime.ModuleError
	if !errors.As(err, &refusal) {
		return err
	}
	v.Stage, v.Problem = refusal.Stage, refusal.Err.Error()
	var limit *limits.Error
	if errors.As(err, &limit) {
		v.Limit = limit.Name
	}
	return nil
}

// newCall prepares a call with a small message that may publish anything.
func newCall(g limits.Guest) *messaging.Call {
	return messaging.NewCall(messaging.CallOptions{
		Message: messaging.Message{Topic: "in", Data: []byte("hello"), Metadata: []messaging.Pair{{Key: "a", Value: "b"}}},
		Limits:  g,
		Admit: func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
			return messaging.Admission{ID: "id"}, nil
		},
	})
}

// Check says what is wrong with a verdict on m; nil if it is the one that m must have.
func (m *Module) Check(v Verdict) error {
	want := Refusal{}
	if m.Refused != nil {
		want = *m.Refused
	}
	stopped := ""
	if m.Endless {
		stopped = "timeout"
	}
	switch {
	case v.Stage != want.Stage, want.Limit != "" && v.Limit != want.Limit, !strings.Contains(v.Problem, want.Words):
		return fmt.Errorf("refused at %q for %q: %s; want %+v", v.Stage, v.Limit, v.Problem, want)
	case v.Ended != m.Ends:
		return fmt.Errorf("its call ended as %q, want %q", v.Ended, m.Ends)
	case v.Stopped != stopped:
		return fmt.Errorf("stopped as %q, want %q", v.Stopped, stopped)
	}
	return nil
}
