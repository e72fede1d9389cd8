package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

type tailQuery struct {
	TopicPath
	After uint64 `query:"after" doc:"position of the last message that was seen: begin with what came after it"`
}

type replayQuery struct {
	TopicPath
	From  uint64 `query:"from" doc:"position to begin at; all that is stored if neither is given"`
	Since string `query:"since" doc:"time to begin at, as 2030-01-31T12:00:00Z"`
}

// addEvents registers what streams messages.
func (a *admin) addEvents() {
	streams := newSlots(AdminStreams, AdminTenantStreams)
	addStream(a, streams, topicRoute+"/tail", "tail", "Messages as they are published", a.tail)
	addStream(a, streams, topicRoute+"/replay", "replay", "Messages that are stored, whether they are done or not", a.replay)
}

// send streams what an operation found until ctx ends. It returns an error if the stream broke off.
type send func(ctx context.Context, s *eventStream) error

// addStream registers an operation that answers with a stream of events. open does what can be refused.
func addStream[I any](a *admin, streams *slots, path, id, summary string, open func(context.Context, *I) (send, error)) {
	event := a.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.Event](), true, "")
	huma.Register(a.api, huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary,
		Responses: map[string]*huma.Response{"200": {
			Description: "OK. A stream of JSON objects, one a line. One that breaks off is not complete.",
			Content:     map[string]*huma.MediaType{wire.EventsContentType: {Schema: event}},
		}},
	}, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		giveBack, ok := streams.take(ctx)
		if !ok {
			return nil, a.refusal(later(problem(http.StatusServiceUnavailable, wire.CodeBusy, "too many tails and replays are open"), time.Second))
		}
		run, err := open(ctx, in)
		if err != nil {
			giveBack()
			return nil, a.refusal(err)
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			defer giveBack()
			r, w := humago.Unwrap(ctx)
			a.stream(id, run, r, w)
		}}, nil
	})
}

// stream answers with a stream, until its client is gone or the server stops.
func (a *admin) stream(id string, run send, r *http.Request, w http.ResponseWriter) {
	ctx, cancel := untilStop(r.Context())
	defer cancel()
	s, err := newEventStream(w)
	if err == nil {
		err = run(ctx, s)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	a.Logger.Warn("stream broken off", zap.String("operation", id), zap.Error(err))
	panic(http.ErrAbortHandler)
}

func (a *admin) tail(ctx context.Context, q *tailQuery) (send, error) {
	t, err := a.Log.Tail(ctx, q.Tenant, q.Topic, substrate.TailOptions{After: q.After})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s *eventStream) error {
		defer t.Close()
		for {
			e, err := t.Next(ctx)
			if err != nil {
				return err
			}
			if err := s.send(tailedOf(e)); err != nil {
				return err
			}
			if err := s.control.Flush(); err != nil {
				return err
			}
		}
	}, nil
}

func (a *admin) replay(ctx context.Context, q *replayQuery) (send, error) {
	start, err := q.start()
	if err != nil {
		return nil, err
	}
	r, err := a.Log.Replay(ctx, q.Tenant, q.Topic, start)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s *eventStream) error {
		if gap, is := r.Gap(); is {
			if err := s.send(wire.Event{Gap: gapOf(gap)}); err != nil {
				return err
			}
		}
		for m, err := range r.Messages(ctx) {
			if err != nil {
				return err
			}
			if err := s.send(storedOf(m)); err != nil {
				return err
			}
		}
		if n := r.Damaged(); n > 0 {
			return s.send(wire.Event{Damaged: n})
		}
		return nil
	}, nil
}

func (q *replayQuery) start() (substrate.Start, error) {
	switch {
	case q.From > 0 && q.Since != "":
		return substrate.Start{}, problem(http.StatusBadRequest, wire.CodeInvalid, "from and since are given; give one of them")
	case q.From > 0:
		return substrate.Start{Kind: substrate.StartPosition, Position: q.From}, nil
	case q.Since != "":
		at, err := time.Parse(time.RFC3339, q.Since)
		if err != nil {
			return substrate.Start{}, problem(http.StatusBadRequest, wire.CodeInvalid, "since is no time; give one as 2030-01-31T12:00:00Z")
		}
		return substrate.Start{Kind: substrate.StartTime, Time: at}, nil
	}
	return substrate.Start{Kind: substrate.StartEarliest}, nil
}

// eventStream writes events for as long as it takes: the time that a connection has for writing is that of each event.
type eventStream struct {
	control *http.ResponseController
	enc     *json.Encoder
}

// newEventStream sends the head of the answer.
func newEventStream(w http.ResponseWriter) (*eventStream, error) {
	s := &eventStream{control: http.NewResponseController(w), enc: json.NewEncoder(w)}
	if err := s.control.SetReadDeadline(time.Time{}); err != nil { // at which the request would count as given up
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", wire.EventsContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	return s, s.control.Flush()
}

func (s *eventStream) send(e wire.Event) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.enc.Encode(e)
}
