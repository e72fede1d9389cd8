package app

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

// policies returns the topic policies of the host config.
func policies(h *config.Host) map[substrate.TopicName]substrate.Policy {
	out := make(map[substrate.TopicName]substrate.Policy, len(h.Topics))
	for _, t := range h.Topics {
		out[substrate.TopicName{Tenant: t.Tenant, Topic: t.Topic}] = substrate.Policy{
			MaxDepth: t.MaxDepth, MaxRatePerSec: t.MaxRatePerSec, MaxMessageBytes: t.MaxMessageBytes, MaxUnflushed: t.MaxUnflushed,
			MaxPriority: t.MaxPriority, IdempotencyWindowMilli: millis(t.IdempotencyWindow), RetentionMilli: millis(t.Retention),
			RetentionBytes: t.RetentionBytes, KeepMilli: millis(t.Keep), MaxAgeMilli: millis(t.MaxAge),
		}
	}
	return out
}

func millis(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// applyTopics makes so what the host config says of topics beside their policies. It asks the log only for what differs.
func applyTopics(ctx context.Context, logger *zap.Logger, log *substrate.Log, topics []config.Topic) error {
	for _, t := range topics {
		is, _ := log.Stats(t.Tenant, t.Topic)
		if err := applyLane(ctx, logger, log, t, is.LaneMode); err != nil {
			return fmt.Errorf("set the default lane of topic %s of tenant %s: %w", t.Topic, t.Tenant, err)
		}
		if t.Paused == nil || *t.Paused == is.Paused {
			continue
		}
		if err := log.Pause(ctx, t.Tenant, t.Topic, *t.Paused); err != nil {
			return fmt.Errorf("pause or resume topic %s of tenant %s: %w", t.Topic, t.Tenant, err)
		}
		logger.Info("topic is paused or resumed, as the host config says",
			zap.String("tenant", t.Tenant), zap.String("topic", t.Topic), zap.Bool("paused", *t.Paused))
	}
	return nil
}

// applyLane sets the mode of a topic's default lane, if it is another.
func applyLane(ctx context.Context, logger *zap.Logger, log *substrate.Log, t config.Topic, is substrate.LaneMode) error {
	if t.DefaultLane == "" {
		return nil
	}
	mode, err := substrate.ParseLaneMode(t.DefaultLane)
	if err != nil || mode == is {
		return err
	}
	dropped, err := log.SetLaneMode(ctx, t.Tenant, t.Topic, mode)
	if err != nil {
		return err
	}
	fields := []zap.Field{
		zap.String("tenant", t.Tenant), zap.String("topic", t.Topic), zap.Stringer("mode", mode), zap.Stringer("before", is),
	}
	if mode != substrate.LaneOff {
		logger.Info("default lane has another mode, as the host config says", fields...)
		return nil
	}
	logger.Warn("default lane is turned off, as the host config says: what waited there is dropped",
		append(fields, zap.Int64("dropped_messages", dropped))...)
	return nil
}
