package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

// makeLanes makes what the consumers of a plan take messages from, durably and before any of them does: first the default
// lanes, so that the first group of a topic takes nothing from the consumer beside it.
func makeLanes(ctx context.Context, logger *zap.Logger, log *substrate.Log, consumers []config.Consumer) error {
	for _, groups := range []bool{false, true} {
		for i := range consumers {
			c := &consumers[i]
			if (c.Group != "") != groups {
				continue
			}
			m := laneMaker{log: log, consumer: c, logger: logger.With(
				zap.String("consumer", c.Name), zap.String("tenant", c.Tenant), zap.String("topic", c.Topic), zap.String("lane", c.Group))}
			if err := m.make(ctx); err != nil {
				return fmt.Errorf("consumer %s: %w", c.Name, err)
			}
		}
	}
	return nil
}

// laneMaker makes the lane of one consumer.
type laneMaker struct {
	log      *substrate.Log
	consumer *config.Consumer
	logger   *zap.Logger
}

func (m laneMaker) make(ctx context.Context) error {
	want, err := substrate.ParseOrdering(m.consumer.Ordering)
	if err != nil {
		return err
	}
	is, err := m.register(ctx, want)
	if err != nil || is == want {
		return err
	}
	if err := m.log.SetOrdering(ctx, m.consumer.Tenant, m.consumer.Topic, m.consumer.Group, want); err != nil {
		return fmt.Errorf("set the ordering: %w", err)
	}
	m.logger.Info("lane has another ordering, as the manifest says", zap.Stringer("ordering", want), zap.Stringer("before", is))
	return nil
}

// register makes the lane, if it isn't there, and returns its ordering.
func (m laneMaker) register(ctx context.Context, want substrate.Ordering) (substrate.Ordering, error) {
	if m.consumer.Group == "" {
		return m.useDefaultLane(ctx)
	}
	given := startOf(m.consumer.Start)
	start := given
	if s := m.consumer.Start; s != nil && s.Kind == config.StartLatest && !s.Time.IsZero() {
		start = substrate.Start{Kind: substrate.StartTime, Time: s.Time.Truncate(time.Millisecond)} // it was accepted then
	}
	g, made, err := m.createGroup(ctx, substrate.GroupOptions{Start: start, Ordering: want})
	switch {
	case err != nil:
		return 0, fmt.Errorf("make group %s of topic %s: %w", m.consumer.Group, m.consumer.Topic, err)
	case made:
		m.logger.Info("consumer group made", zap.Stringer("start", start), zap.Uint64("cursor", g.Cursor), zap.Int64("lag", g.Lag))
	case m.consumer.Start != nil && !sameStart(given, g.Start) && !sameStart(start, g.Start):
		m.logger.Warn("start has no effect: the consumer group was made before; `longshore groups reset` moves its cursor",
			zap.Stringer("start", given), zap.Stringer("made_with", g.Start), zap.Uint64("cursor", g.Cursor))
	}
	return g.Ordering, nil
}

// createGroup makes the group. One of that name whose deletion was broken off is taken away first.
func (m laneMaker) createGroup(ctx context.Context, o substrate.GroupOptions) (substrate.Group, bool, error) {
	c := m.consumer
	g, made, err := m.log.CreateGroup(ctx, c.Tenant, c.Topic, c.Group, o)
	if !errors.Is(err, substrate.ErrGroupEnding) {
		return g, made, err
	}
	if err := m.log.DeleteGroup(ctx, c.Tenant, c.Topic, c.Group); err != nil {
		return substrate.Group{}, false, err
	}
	return m.log.CreateGroup(ctx, c.Tenant, c.Topic, c.Group, o)
}

// useDefaultLane makes sure that the default lane is owed messages. On a full disk the first claim does it instead.
func (m laneMaker) useDefaultLane(ctx context.Context) (substrate.Ordering, error) {
	err := m.log.UseDefaultLane(ctx, m.consumer.Tenant, m.consumer.Topic)
	switch {
	case errors.Is(err, substrate.ErrLaneOff):
		return 0, fmt.Errorf("%w: topic %s was given default_lane: off before; "+
			"give the consumer a group, or say default_lane: auto in the host config", err, m.consumer.Topic)
	case errors.Is(err, substrate.ErrStorageFull):
		m.logger.Warn("topic is not made yet", zap.Error(err))
	case err != nil:
		return 0, fmt.Errorf("make topic %s: %w", m.consumer.Topic, err)
	}
	s, _ := m.log.Stats(m.consumer.Tenant, m.consumer.Topic)
	return s.Ordering, nil
}

// startOf returns where a group begins: with all that is stored, if the manifest doesn't say.
func startOf(s *config.Start) substrate.Start {
	if s == nil {
		return substrate.Start{}
	}
	switch s.Kind {
	case config.StartLatest:
		return substrate.Start{Kind: substrate.StartLatest}
	case config.StartPosition:
		return substrate.Start{Kind: substrate.StartPosition, Position: s.Position}
	case config.StartTime:
		return substrate.Start{Kind: substrate.StartTime, Time: s.Time.Truncate(time.Millisecond)}
	case config.StartEarliest:
	}
	return substrate.Start{}
}

// sameStart compares starts as the log keeps them.
func sameStart(a, b substrate.Start) bool {
	return a.Kind == b.Kind && a.Position == b.Position && a.Time.Equal(b.Time)
}
