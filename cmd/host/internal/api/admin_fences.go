package api

import (
	"context"
	"net/http"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
)

type fencesQuery struct {
	TopicPath
	Lane  string `query:"lane" doc:"lane; the default lane if it is not given"`
	After string `query:"after" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}

type resetFencesRequest struct {
	TopicPath
	Body wire.FenceReset
}

// addFences registers what is about the fence marks of lanes.
func (a *admin) addFences() {
	const route = topicRoute + "/fences"
	add(a, http.MethodGet, route, "list-fences", "A page of the fence marks of a lane, by key", http.StatusOK, a.listFences)
	add(a, http.MethodPost, route+"/reset", "reset-fences", "Forget fence marks, so that any token is accepted", http.StatusOK, a.resetFences)
}

func (a *admin) listFences(_ context.Context, q *fencesQuery) (wire.FenceList, error) {
	list := wire.FenceList{Fences: []wire.Fence{}}
	lane, _ := laneOf(q.Lane)
	limit := min(q.Limit, limits.FencePage)
	marks, err := a.Log.Fences(q.Tenant, q.Topic, lane, q.After, limit)
	if err != nil {
		return list, err
	}
	for _, m := range marks {
		list.Fences = append(list.Fences, wire.Fence{Key: m.Key, Token: m.Token, Raised: m.Raised.UTC()})
	}
	if len(marks) == limit {
		list.Next = marks[limit-1].Key
	}
	return list, nil
}

func (a *admin) resetFences(ctx context.Context, r *resetFencesRequest) (wire.Moved, error) {
	if (r.Body.Key == "") != r.Body.All {
		return wire.Moved{}, problem(http.StatusBadRequest, wire.CodeInvalid, "give either key or all")
	}
	lane, _ := laneOf(r.Body.Lane)
	n, err := a.Log.ResetFences(ctx, r.Tenant, r.Topic, lane, r.Body.Key)
	return wire.Moved{Count: n}, err
}
