package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

type deadQuery struct {
	TopicPath
	ID        string `query:"id" doc:"message id"`
	Lane      string `query:"lane" doc:"lane; \"default\" is the default lane"`
	OlderThan string `query:"older_than" doc:"least age since publish, as 90s or 24h"`
	Reason    string `query:"reason" doc:"text that the reason contains"`
	Limit     int    `query:"limit" minimum:"0" maximum:"1000" doc:"at most so many; 0 is 1000"`
	After     uint64 `query:"after" doc:"next of the page before"`
	AfterLane string `query:"after_lane" doc:"next_lane of the page before"`
}

// Resolve refuses filters that are given but empty: they would select everything. huma takes them for not given.
func (*deadQuery) Resolve(ctx huma.Context) []error {
	return refuseEmpty(ctx, "id", "lane", "older_than", "reason")
}

// refuseEmpty reports which of the named parameters are given but empty.
func refuseEmpty(ctx huma.Context, names ...string) []error {
	u := ctx.URL()
	given := u.Query()
	var errs []error
	for _, name := range names {
		if values, ok := given[name]; ok && slices.Contains(values, "") {
			errs = append(errs, &huma.ErrorDetail{Location: "query." + name, Message: "is empty; give a value, or leave it out"})
		}
	}
	return errs
}

type deadPath struct {
	TopicPath
	ID   string `path:"id" doc:"message id"`
	Lane string `query:"lane" doc:"of which lane, where the message is dead in several; \"default\" is the default lane"`
}

// Resolve refuses a lane that is given but empty.
func (*deadPath) Resolve(ctx huma.Context) []error { return refuseEmpty(ctx, "lane") }

type moveRequest struct {
	TopicPath
	Body wire.Move
}

// addDeadLetters registers what is about dead letters.
func (a *admin) addDeadLetters() {
	const route = topicRoute + "/dead-letters"
	add(a, http.MethodGet, route, "list-dead-letters", "A page of dead letters, by position", http.StatusOK, a.listDead)
	add(a, http.MethodGet, route+"/{id}", "get-dead-letter", "A dead letter with its message", http.StatusOK, a.getDead)
	add(a, http.MethodPost, route+"/redrive", "redrive", "Make dead letters ready again", http.StatusOK, a.redrive)
	add(a, http.MethodPost, route+"/discard", "discard", "Delete dead letters for good", http.StatusOK, a.discard)
}

// filterOf translates a filter; limit and paging are the caller's.
func filterOf(f wire.Filter) (substrate.DeadLetterFilter, error) {
	out := substrate.DeadLetterFilter{ID: f.ID, ReasonContains: f.Reason, Limit: f.Limit}
	out.Lane, out.LaneSet = laneOf(f.Lane)
	var err error
	out.OlderThan, err = olderThan(f.OlderThan)
	return out, err
}

// olderThan reads an age of a filter; "" is 0.
func olderThan(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, problem(http.StatusBadRequest, wire.CodeInvalid, fmt.Sprintf("older_than %.40q is no duration over 0; write 90s, 15m or 24h", s))
	}
	return d, nil
}

func (a *admin) listDead(ctx context.Context, q *deadQuery) (wire.DeadLetterList, error) {
	list := wire.DeadLetterList{DeadLetters: []wire.DeadLetter{}}
	if err := q.valid(); err != nil {
		return list, err
	}
	f, err := filterOf(wire.Filter{ID: q.ID, Lane: q.Lane, OlderThan: q.OlderThan, Reason: q.Reason, Limit: q.Limit})
	if err != nil {
		return list, err
	}
	f.After, f.AfterLane = q.After, q.AfterLane
	if f.Limit == 0 {
		f.Limit = limits.DeadLetterPage
	}
	got, err := a.Log.DeadLetters(ctx, q.Tenant, q.Topic, f)
	if err != nil {
		return list, err
	}
	for _, d := range got {
		list.DeadLetters = append(list.DeadLetters, deadOf(d))
	}
	if len(got) == f.Limit {
		list.Next, list.NextLane = got[len(got)-1].Position, got[len(got)-1].Lane
	}
	return list, nil
}

// laneOf reads a lane from a filter, where "" means any and "default" the default lane.
func laneOf(s string) (lane string, set bool) {
	if s == wire.DefaultLane {
		return "", true
	}
	return s, s != ""
}

func (a *admin) getDead(ctx context.Context, q *deadPath) (wire.DeadLetterDetail, error) {
	if err := q.valid(); err != nil {
		return wire.DeadLetterDetail{}, err
	}
	d, m, err := a.Log.DeadLetter(ctx, q.Tenant, q.Topic, q.ID)
	if err != nil {
		return wire.DeadLetterDetail{}, err
	}
	if lane, given := laneOf(q.Lane); given && lane != d.Lane {
		of, err := a.Log.DeadLetters(ctx, q.Tenant, q.Topic, substrate.DeadLetterFilter{ID: q.ID, Lane: lane, LaneSet: true, Limit: 1})
		if err == nil && len(of) == 0 {
			err = substrate.ErrNotFound
		}
		if err != nil {
			return wire.DeadLetterDetail{}, err
		}
		d = of[0]
	}
	out := wire.DeadLetterDetail{DeadLetter: deadOf(d), Message: messageOf(m), Unreadable: unreadable(d, m)}
	if by := out.DeadLetter.Operator; by != nil {
		_, err := a.Context.VerifyOperator(d.Operator, m.Envelope, dispatcher.Binding(m))
		verified := err == nil
		by.Verified = &verified
	}
	return out, nil
}

// unreadable reports whether the log found only the names of a dead letter's message.
func unreadable(d substrate.DeadLetter, m substrate.Message) bool {
	return len(m.Payload) == 0 && len(m.Envelope) == 0 && (d.PayloadBytes > 0 || d.Reason == substrate.ReasonCorrupt)
}

// redrive makes dead letters ready again. One whose signed context doesn't verify stays dead: it would only die again.
func (a *admin) redrive(ctx context.Context, r *moveRequest) (wire.Moved, error) {
	f, err := r.filter()
	if err != nil {
		return wire.Moved{}, err
	}
	if r.Body.DryRun {
		return a.countDead(ctx, r.TopicPath, f)
	}
	act, err := subjectOf(ctx)
	if err != nil {
		return wire.Moved{}, err
	}
	by := signedctx.Operator{Act: act, At: time.Now(), Why: r.Body.Why}
	if _, err := a.Context.SealOperator(by, nil, signedctx.Binding{}); err != nil { // whatever is redriven
		return wire.Moved{}, err
	}
	got, err := a.Log.Redrive(ctx, r.Tenant, r.Topic, substrate.Redrive{Filter: f, Admit: a.verifies, Note: func(m substrate.Message) (string, error) {
		return a.Context.SealOperator(by, m.Envelope, dispatcher.Binding(m))
	}})
	return wire.Moved{Count: got.Moved, Refused: got.Refused}, err
}

// verifies accepts a message without a signed context: only its consumer knows whether one is required.
func (a *admin) verifies(m substrate.Message) error {
	if len(m.Envelope) == 0 {
		return nil
	}
	_, err := a.Context.Verify(m.Envelope, dispatcher.Binding(m))
	return err
}

func (a *admin) discard(ctx context.Context, r *moveRequest) (wire.Moved, error) {
	f, err := r.filter()
	if err != nil {
		return wire.Moved{}, err
	}
	if r.Body.DryRun {
		return a.countDead(ctx, r.TopicPath, f)
	}
	n, err := a.Log.Discard(ctx, r.Tenant, r.Topic, f)
	return wire.Moved{Count: n}, err
}

func (r *moveRequest) filter() (substrate.DeadLetterFilter, error) {
	if err := r.valid(); err != nil {
		return substrate.DeadLetterFilter{}, err
	}
	return filterOf(r.Body.Filter)
}

// countDead counts what f selects, page by page.
func (a *admin) countDead(ctx context.Context, t TopicPath, f substrate.DeadLetterFilter) (wire.Moved, error) {
	most, total := f.Limit, 0
	for {
		f.Limit = limits.DeadLetterPage
		if most > 0 {
			f.Limit = min(f.Limit, most-total)
		}
		page, err := a.Log.DeadLetters(ctx, t.Tenant, t.Topic, f)
		if err != nil {
			return wire.Moved{}, err
		}
		total += len(page)
		if len(page) < f.Limit || total == most {
			return wire.Moved{Count: total, DryRun: true}, nil
		}
		f.After, f.AfterLane = page[len(page)-1].Position, page[len(page)-1].Lane
	}
}
