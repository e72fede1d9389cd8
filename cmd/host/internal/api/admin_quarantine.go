package api

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

type quarantineQuery struct {
	TopicPath
	After string `query:"after" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}

type quarantinePath struct {
	TopicPath
	ID string `path:"id" doc:"id of the entry"`
}

type discardQuarantinedRequest struct {
	TopicPath
	Body wire.QuarantineFilter
}

// addQuarantine registers what is about records that do not check.
func (a *admin) addQuarantine() {
	const route = topicRoute + "/quarantine"
	add(a, http.MethodGet, route, "list-quarantine", "A page of the records that do not check", http.StatusOK, a.listQuarantine)
	add(a, http.MethodGet, route+"/{id}", "get-quarantined", "A record that does not check, with its bytes", http.StatusOK, a.getQuarantined)
	add(a, http.MethodPost, route+"/discard", "discard-quarantined", "Delete records that do not check for good", http.StatusOK, a.discardQuarantined)
}

func (a *admin) listQuarantine(ctx context.Context, q *quarantineQuery) (wire.QuarantineList, error) {
	list := wire.QuarantineList{Entries: []wire.QuarantineEntry{}}
	limit := min(q.Limit, limits.QuarantinePage)
	entries, err := a.Log.Quarantined(ctx, q.Tenant, q.Topic, q.After, limit)
	if err != nil {
		return list, err
	}
	for _, e := range entries {
		list.Entries = append(list.Entries, quarantinedOf(e))
	}
	if len(entries) == limit {
		list.Next = entries[limit-1].ID
	}
	return list, nil
}

func (a *admin) getQuarantined(ctx context.Context, q *quarantinePath) (wire.QuarantineDetail, error) {
	e, raw, err := a.Log.QuarantinedEntry(ctx, q.Tenant, q.Topic, q.ID)
	if err != nil {
		return wire.QuarantineDetail{}, err
	}
	return wire.QuarantineDetail{Entry: quarantinedOf(e), Bytes: hex.EncodeToString(raw)}, nil
}

func (a *admin) discardQuarantined(ctx context.Context, r *discardQuarantinedRequest) (wire.Moved, error) {
	f := substrate.QuarantineFilter{ID: r.Body.ID, Limit: r.Body.Limit}
	var err error
	if f.OlderThan, err = olderThan(r.Body.OlderThan); err != nil {
		return wire.Moved{}, err
	}
	n, err := a.Log.DiscardQuarantined(ctx, r.Tenant, r.Topic, f)
	return wire.Moved{Count: n}, err
}

func quarantinedOf(e substrate.QuarantineEntry) wire.QuarantineEntry {
	return wire.QuarantineEntry{
		ID: e.ID, Tenant: e.Tenant, Topic: e.Topic, Position: e.Position, Reason: e.Reason, Error: e.Error, Length: e.Length,
		Preview: e.Preview, At: e.At.UTC(),
	}
}
