package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/internal/config"
)

// MinMessages is the least number of orders that leaves something to do when the host is killed.
const MinMessages = 100

const (
	forgedReason = "context-forged"
	batchOrders  = 100
	stallTimeout = time.Minute // without any progress
)

// Options are what a demo needs. All fields are required.
type Options struct {
	Binary   string // that runs as the host: this program
	From     string // folder in the checkout
	Messages int    // orders to publish; at least MinMessages
	Keep     bool   // keep the folder
	Screen   *Screen
}

// ErrDisagree says that a figure is not what it must be.
var ErrDisagree = errors.New("the figures do not agree")

// tale is a demo while it runs.
type tale struct {
	Options
	space    workspace
	in       input
	mods     []misbehaving.Module
	config   *config.Host
	host     *child
	sent     int // messages that the host acknowledged
	redriven int
}

// Run runs the demo and returns its figures. The error is ErrDisagree if they are not what they must be.
func Run(ctx context.Context, o Options) (figs []Figure, err error) {
	space, err := newWorkspace(o.From)
	if err != nil {
		return nil, err
	}
	t := &tale{Options: o, space: space, in: input{orders: o.Messages}, mods: misbehaving.All()}
	defer func() {
		if t.host != nil {
			t.host.kill()
		}
		if err != nil || o.Keep {
			o.Screen.detail("the folder of this demo is kept: %s", space.dir)
			return
		}
		err = os.RemoveAll(space.dir)
	}()
	for _, step := range []func(context.Context) error{t.prepare, t.forge, t.start, t.publishHalf, t.crash, t.misbehave, t.correct} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return t.conclude(ctx)
}

// prepare builds the consumers and writes the files.
func (t *tale) prepare(ctx context.Context) error {
	s := t.Screen
	s.printf("%s\n\n", s.paint(bold, "Longshore: orders -> intake -> orders/lines -> ledger -> ledger/entries"))
	s.step("Build", "intake and ledger, two consumers in Go, from examples/orders")
	for _, name := range []string{"intake", "ledger"} {
		if err := t.space.build(ctx, name); err != nil {
			return err
		}
	}
	s.detail("and %d consumers that misbehave, from examples/misbehaving", len(t.mods))
	if err := t.space.emit(t.mods); err != nil {
		return err
	}
	if err := t.space.write(configFile, hostConfig(t.mods)); err != nil {
		return err
	}
	if err := t.space.write(manifestFile, manifest(t.mods, smallOutbox)); err != nil {
		return err
	}
	var err error
	t.config, err = config.LoadHost(t.space.file(configFile), config.Overrides{})
	return err
}

// forge writes the message that nobody may believe.
func (t *tale) forge(ctx context.Context) error {
	t.Screen.step("Forge", "one order, written into the log past the host and signed with a wrong key")
	if err := os.MkdirAll(t.config.Data, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	return forge(ctx, t.config)
}

// start starts the host.
func (t *tale) start(ctx context.Context) error {
	host, err := startChild(ctx, t.Binary, t.space, t.config.Listen.Admin)
	if err != nil {
		return err
	}
	t.host = host
	t.Screen.step("Start", "a host in process %d, with %d consumers, at http://%s", host.info.PID, len(t.mods)+2, host.info.HTTP)
	return nil
}

// publishHalf publishes the first half of the orders.
func (t *tale) publishHalf(ctx context.Context) error {
	t.Screen.step("Publish", "%s orders over HTTP, in batches; each is on disk before the host answers", count(t.in.orders))
	return t.publish(ctx, t.in.orders/2)
}

// publish publishes orders until so many are.
func (t *tale) publish(ctx context.Context, until int) error {
	for t.sent < until {
		to := min(t.sent+min(batchOrders, t.in.orders/10), until)
		batch, err := t.in.batch(t.sent, to)
		if err != nil {
			return err
		}
		receipts, err := t.host.data.PublishBatch(ctx, ordersTopic, batch)
		if err != nil {
			return fmt.Errorf("publish orders: %w", err)
		}
		t.sent += len(receipts)
		t.Screen.progress(t.sent, t.in.orders, "orders published")
	}
	return nil
}

// crash kills the host in the middle of the work, starts it again, and publishes the rest.
func (t *tale) crash(ctx context.Context) error {
	left, err := t.untilBusy(ctx)
	if err != nil {
		return err
	}
	t.host.kill()
	t.Screen.endProgress()
	t.Screen.step("Kill -9", "the host, while %s messages are not yet done", count(left))
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.publish(ctx, t.in.orders); err != nil {
		return err
	}
	t.Screen.endProgress()
	return nil
}

// untilBusy waits until entries have come out at the end while others are still on their way, and returns how many.
func (t *tale) untilBusy(ctx context.Context) (left int, err error) {
	err = t.host.poll(ctx, "the consumers to get to work", func() (bool, error) {
		w, err := t.work(ctx)
		if err != nil {
			return false, err
		}
		if w.left == 0 && t.sent < t.in.orders {
			return false, t.publish(ctx, min(t.in.orders, t.sent+batchOrders)) // they were faster than the demo
		}
		left = w.left
		return w.left == 0 || w.entries > 0 && w.leased > 0, nil // a few orders may be done before anybody looks
	})
	return left, err
}

// misbehave gives each module that misbehaves its messages, and waits until all is done.
func (t *tale) misbehave(ctx context.Context) error {
	t.Screen.step("Misbehave", "%d messages for each consumer that spins, hoards, traps, floods or lies", messagesEach)
	for _, m := range t.mods {
		batch := make([]wire.NewMessage, messagesEach)
		for i := range batch {
			var err error
			if batch[i], err = message(m.Name); err != nil {
				return err
			}
		}
		if _, err := t.host.data.PublishBatch(ctx, topicOf(m), batch); err != nil {
			return fmt.Errorf("publish to %s: %w", topicOf(m), err)
		}
	}
	return t.untilDone(ctx, len(t.in.entries())-bigOrders*bigLines)
}

// correct raises the limit that refused the big orders, and redrives them.
func (t *tale) correct(ctx context.Context) error {
	dead, err := t.host.admin.DeadLetters(ctx, tenant, ordersTopic, wire.Filter{})
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	t.Screen.step("Look", "%d orders are dead letters", len(dead))
	byReason := map[string]int{}
	for _, d := range dead {
		byReason[d.Reason]++
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		t.Screen.detail("%d × %s", byReason[reason], reason)
	}
	t.Screen.step("Fix", "orders of %d lines are over intake's limit of %d messages: raise it in the manifest, restart", bigLines, smallOutbox)
	if err := t.host.stop(); err != nil {
		return err
	}
	if err := t.space.write(manifestFile, manifest(t.mods, rightOutbox)); err != nil {
		return err
	}
	if err := t.start(ctx); err != nil {
		return err
	}
	moved, err := t.host.admin.Redrive(ctx, tenant, ordersTopic, wire.Move{})
	if err != nil {
		return fmt.Errorf("redrive: %w", err)
	}
	t.redriven = moved.Count
	t.Screen.step("Redrive", "%d orders; %d refused, because its signature does not verify", moved.Count, moved.Refused)
	return t.untilDone(ctx, len(t.in.entries()))
}

// conclude counts, compares and says where to look next.
func (t *tale) conclude(ctx context.Context) ([]Figure, error) {
	f, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	t.Screen.step("Count", "everything, read back from the host")
	checks := f.checks(t.in, t.mods, t.sent+messagesEach*len(t.mods))
	agree := true
	for _, c := range checks {
		t.Screen.verdict(c)
		agree = agree && c.ok()
	}
	if err := t.host.stop(); err != nil {
		return nil, err
	}
	if !agree {
		return figures(checks), ErrDisagree
	}
	t.Screen.printf("\n%s\n", "Where to look next: README.md for how a message flows, examples/orders for a consumer in ten lines,")
	t.Screen.printf("%s\n", "docs/failure-reasons.md for the reasons above, and `go run ./cmd/host help` for the commands.")
	return figures(checks), nil
}
