package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
)

// Version is an entry of a manifest and the module that it is to run.
type Version struct {
	Consumer config.Consumer
	Wasm     []byte // nil: what runs under the entry's name is to go on as it is, if there is any
}

// Outcome is what became of a Version.
type Outcome struct {
	Digest  string // of the module that runs now under the entry's name; "" if there is none
	New     bool   // the module, or what the entry says, is another than before
	Refused error  // why the module that was given doesn't run: a config.Fault; nil if it does
}

// Live is a running host whose consumers can be replaced. It is used by one goroutine.
type Live struct {
	parts   *parts
	running map[consumerKey]placed
}

// consumerKey tells consumers apart.
type consumerKey struct{ tenant, name string }

func keyOf(c *config.Consumer) consumerKey { return consumerKey{c.Tenant, c.Name} }

// placed is a consumer that runs.
type placed struct {
	entry    config.Consumer
	module   *runtime.Module
	consumer dispatcher.Consumer
}

// Deploy makes these versions the consumers of the host, and says what became of each. One that is given as it runs goes on
// untouched; one whose module is refused goes on in the version before, if there is one. Running deliveries finish on the
// version that began them. After an error the consumers are those of before.
func (l *Live) Deploy(ctx context.Context, versions []Version) ([]Outcome, error) {
	all, outcomes, err := l.placeAll(ctx, versions)
	if err == nil {
		err = l.swap(ctx, all)
	}
	if err != nil {
		return nil, errors.Join(err, l.closeNew(ctx, all))
	}
	l.running = make(map[consumerKey]placed, len(all))
	for _, now := range all {
		l.running[keyOf(&now.entry)] = now
	}
	return outcomes, nil
}

// placeAll returns what is to run of these versions. After an error it returns what is compiled until then.
func (l *Live) placeAll(ctx context.Context, versions []Version) (all []placed, outcomes []Outcome, err error) {
	outcomes = make([]Outcome, len(versions))
	for i, v := range versions {
		before := l.running[keyOf(&v.Consumer)]
		now, err := l.place(ctx, v, before)
		var refused config.Fault
		if errors.As(err, &refused) {
			outcomes[i].Refused, now = refused, before
		} else if err != nil {
			return all, nil, err
		}
		if now.module == nil {
			continue
		}
		all = append(all, now)
		outcomes[i].Digest, outcomes[i].New = now.module.Digest(), !l.runs(now)
	}
	return all, outcomes, nil
}

// place returns a version as it is to run: with the module of before, if that is the same.
func (l *Live) place(ctx context.Context, v Version, before placed) (placed, error) {
	c := &v.Consumer
	if v.Wasm == nil {
		return before, nil
	}
	module := before.module
	sum := sha256.Sum256(v.Wasm)
	if module == nil || module.Digest() != hex.EncodeToString(sum[:]) || before.entry.Guest != c.Guest || before.entry.Instances != c.Instances {
		var err error
		if module, err = compileOne(ctx, l.parts.engine, c, v.Wasm, l.parts.budgets); err != nil {
			return placed{}, err
		}
	}
	return placed{entry: *c, module: module, consumer: consumerOf(c, module)}, nil
}

// runs reports whether a consumer runs as it is already.
func (l *Live) runs(c placed) bool {
	before := l.running[keyOf(&c.entry)]
	was, is := before.consumer, c.consumer
	was.Guest, is.Guest = nil, nil
	return before.module == c.module && reflect.DeepEqual(was, is)
}

// swap gives the dispatcher its consumers, and makes the lanes of new ones before.
func (l *Live) swap(ctx context.Context, all []placed) error {
	var entries []config.Consumer // that are another than before
	consumers := make([]dispatcher.Consumer, len(all))
	for i, now := range all {
		consumers[i] = now.consumer
		if !l.runs(now) {
			entries = append(entries, now.entry)
		}
	}
	if err := makeLanes(ctx, l.parts.Logger, l.parts.log, entries); err != nil {
		return err
	}
	if err := l.parts.dispatcher.Swap(ctx, consumers); err != nil {
		return fmt.Errorf("replace the consumers: %w", err)
	}
	return nil
}

// closeNew gives back the modules of a deployment that came to nothing.
func (l *Live) closeNew(ctx context.Context, all []placed) error {
	var errs []error
	for _, now := range all {
		if now.module != l.running[keyOf(&now.entry)].module {
			errs = append(errs, now.module.Close(context.WithoutCancel(ctx)))
		}
	}
	return errors.Join(errs...)
}
