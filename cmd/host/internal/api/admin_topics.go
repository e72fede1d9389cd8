package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

const peekMessages = 1000 // of one answer

type topicsQuery struct {
	Tenant string `query:"tenant" doc:"only this tenant's"`
}

type peekQuery struct {
	TopicPath
	Lane  string `query:"lane" doc:"lane; the default lane if it is not given"`
	After uint64 `query:"after" doc:"only positions above it"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type publishRequest struct {
	TopicPath
	Body wire.Batch
}

type pauseRequest struct {
	TopicPath
	Lane string `query:"lane" doc:"only this lane; \"default\" is the default lane"`
	Body wire.Pause
}

// Resolve refuses a lane that is given but empty: it would be the whole topic.
func (*pauseRequest) Resolve(ctx huma.Context) []error { return refuseEmpty(ctx, "lane") }

// addTopics registers what is about topics and their messages.
func (a *admin) addTopics() {
	add(a, http.MethodGet, "/admin/v1/topics", "list-topics", "The topics with their counts", http.StatusOK, a.listTopics)
	add(a, http.MethodGet, topicRoute, "get-topic", "One topic with its counts", http.StatusOK, a.getTopic)
	register(a, huma.Operation{
		OperationID: "publish", Method: http.MethodPost, Path: topicRoute + "/messages", Summary: "Publish messages, all or none",
		DefaultStatus: http.StatusCreated,
		Responses:     map[string]*huma.Response{"200": {Description: "OK: all were duplicates, and nothing was stored. The body is that of 201."}},
	}, publishStatus, a.publishBatch)
	add(a, http.MethodGet, topicRoute+"/messages", "peek", "Messages that are not done, without leasing them", http.StatusOK, a.peek)
	add(a, http.MethodPut, topicRoute+"/paused", "pause", "Pause or resume a topic, or one lane of it; consumers of it that paused themselves are resumed too", http.StatusOK, a.pause)
}

func (a *admin) listTopics(ctx context.Context, q *topicsQuery) (wire.TopicList, error) {
	list := wire.TopicList{Topics: []wire.TopicStats{}}
	if q.Tenant != "" {
		if err := substrate.ValidTenant(q.Tenant); err != nil {
			return list, err
		}
	}
	for _, s := range a.Log.Topics() {
		if (q.Tenant == "" || q.Tenant == s.Tenant) && sees(ctx, s.Tenant, s.Topic) {
			list.Topics = append(list.Topics, statsOf(s))
		}
	}
	return list, nil
}

func (a *admin) getTopic(_ context.Context, q *TopicPath) (wire.TopicStats, error) {
	if err := q.valid(); err != nil {
		return wire.TopicStats{}, err
	}
	s, ok := a.Log.Stats(q.Tenant, q.Topic)
	if !ok {
		return wire.TopicStats{}, substrate.ErrNotFound
	}
	return statsOf(s), nil
}

func (a *admin) publishBatch(ctx context.Context, r *publishRequest) (wire.Published, error) {
	subject, err := subjectOf(ctx)
	if err != nil {
		return wire.Published{}, err
	}
	if err := mayFence(ctx, r.Body.Messages); err != nil {
		return wire.Published{}, err
	}
	who := signedctx.Principal{Tenant: r.Tenant, Subject: subject}
	receipts, err := a.Publish(ctx, who, r.Topic, r.Body.Messages)
	return wire.Published{Receipts: receipts}, err
}

func (a *admin) peek(ctx context.Context, q *peekQuery) (wire.PeekedList, error) {
	if err := q.valid(); err != nil {
		return wire.PeekedList{}, err
	}
	lane, _ := laneOf(q.Lane)
	got, err := a.Log.Peek(ctx, q.Tenant, q.Topic, lane, q.After, min(q.Limit, peekMessages))
	if err != nil {
		return wire.PeekedList{}, err
	}
	list := wire.PeekedList{Messages: make([]wire.Peeked, len(got))}
	for i, p := range got {
		list.Messages[i] = peekedOf(p)
	}
	return list, nil
}

// knows reports whether there is a topic, or a consumer of it that waits for its first message.
func (a *admin) knows(t TopicPath) bool {
	_, ok := a.Log.Stats(t.Tenant, t.Topic)
	return ok || slices.ContainsFunc(a.Consumers(), func(c dispatcher.ConsumerStatus) bool {
		return c.Tenant == t.Tenant && c.Topic == t.Topic
	})
}

func (a *admin) pause(ctx context.Context, r *pauseRequest) (wire.Pause, error) {
	if err := r.valid(); err != nil {
		return wire.Pause{}, err
	}
	if !a.knows(r.TopicPath) {
		return wire.Pause{}, problem(http.StatusNotFound, wire.CodeNotFound,
			"there is no topic "+r.Topic+" of tenant "+r.Tenant+", and no consumer reads it: `longshore topics` lists those that there are")
	}
	lane, given := laneOf(r.Lane)
	var err error
	if given {
		err = a.Log.PauseLane(ctx, r.Tenant, r.Topic, lane, r.Body.Paused)
	} else {
		err = a.Log.Pause(ctx, r.Tenant, r.Topic, r.Body.Paused)
	}
	if err == nil && !r.Body.Paused {
		a.Resume(func(c dispatcher.ConsumerStatus) bool {
			return c.Tenant == r.Tenant && c.Topic == r.Topic && (!given || c.Lane == lane)
		})
	}
	return r.Body, err
}
