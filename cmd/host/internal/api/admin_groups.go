package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

// GroupPath names a consumer group in a path; exported as TopicPath is.
type GroupPath struct {
	TopicPath
	Group string `path:"group" doc:"consumer group"`
}

type newGroupRequest struct {
	TopicPath
	Body wire.NewGroup
}

type resetGroupRequest struct {
	GroupPath
	Body wire.GroupReset
}

// addGroups registers what is about consumer groups.
func (a *admin) addGroups() {
	const route = topicRoute + "/groups"
	add(a, http.MethodGet, route, "list-groups", "The consumer groups of a topic with their counts", http.StatusOK, a.listGroups)
	register(a, huma.Operation{
		OperationID: "create-group", Method: http.MethodPost, Path: route, Summary: "Make a consumer group, and the topic if there is none",
		DefaultStatus: http.StatusCreated,
		Responses:     map[string]*huma.Response{"200": {Description: "OK: there is one of this name, and it is as it was. The body is that of 201."}},
	}, func(g wire.GroupMade) int {
		if g.Made {
			return http.StatusCreated
		}
		return http.StatusOK
	}, a.createGroup)
	add(a, http.MethodPost, route+"/{group}/reset", "reset-group", "Move a group's cursor", http.StatusOK, a.resetGroup)
	add(a, http.MethodDelete, route+"/{group}", "delete-group", "End a group, with its dead letters", http.StatusOK, a.deleteGroup)
}

func (a *admin) listGroups(_ context.Context, q *TopicPath) (wire.GroupList, error) {
	list := wire.GroupList{Groups: []wire.Group{}}
	groups, err := a.Log.Groups(q.Tenant, q.Topic)
	for _, g := range groups {
		list.Groups = append(list.Groups, groupOf(g))
	}
	return list, err
}

func (a *admin) createGroup(ctx context.Context, r *newGroupRequest) (wire.GroupMade, error) {
	if r.Body.Name == wire.DefaultLane {
		return wire.GroupMade{}, problem(http.StatusBadRequest, wire.CodeInvalid,
			fmt.Sprintf("name %q is that of the lane without a group; give another", r.Body.Name))
	}
	o := substrate.GroupOptions{}
	var err error
	if r.Body.Start != "" {
		if o.Start, err = startOf(r.Body.Start); err != nil {
			return wire.GroupMade{}, err
		}
	}
	if r.Body.Ordering != "" {
		if o.Ordering, err = substrate.ParseOrdering(r.Body.Ordering); err != nil {
			return wire.GroupMade{}, problem(http.StatusBadRequest, wire.CodeInvalid, err.Error())
		}
	}
	g, made, err := a.Log.CreateGroup(ctx, r.Tenant, r.Topic, r.Body.Name, o)
	return wire.GroupMade{Made: made, Group: groupOf(g)}, err
}

// resetGroup answers with the group as it is then.
func (a *admin) resetGroup(ctx context.Context, r *resetGroupRequest) (wire.Group, error) {
	start, err := startOf(r.Body.Start)
	if err != nil {
		return wire.Group{}, err
	}
	if err := a.Log.ResetGroup(ctx, r.Tenant, r.Topic, r.Group, start); err != nil {
		return wire.Group{}, err
	}
	return a.group(r.GroupPath)
}

func (a *admin) deleteGroup(ctx context.Context, q *GroupPath) (wire.GroupDeleted, error) {
	had, err := a.group(*q)
	none := errors.Is(err, substrate.ErrNoGroup) || errors.Is(err, substrate.ErrNotFound)
	if err != nil && !none {
		return wire.GroupDeleted{}, err
	}
	err = a.Log.DeleteGroup(ctx, q.Tenant, q.Topic, q.Group) // also what a deletion that was broken off has left
	return wire.GroupDeleted{Deleted: !none, Lag: had.Lag, InFlight: had.InFlight, DeadLetters: had.DeadLetters}, err
}

func (a *admin) group(q GroupPath) (wire.Group, error) {
	if err := substrate.ValidGroup(q.Group); err != nil {
		return wire.Group{}, err
	}
	groups, err := a.Log.Groups(q.Tenant, q.Topic)
	if err != nil {
		return wire.Group{}, err
	}
	for _, g := range groups {
		if g.Name == q.Group {
			return groupOf(g), nil
		}
	}
	return wire.Group{}, substrate.ErrNoGroup
}

func groupOf(g substrate.Group) wire.Group {
	out := wire.Group{
		Name: g.Name, Start: startText(g.Start), Ordering: g.Ordering.String(), Paused: g.Paused, Cursor: g.Cursor,
		Lag: g.Lag, InFlight: g.InFlight, Leased: g.Leased, DeadLetters: g.DeadLetters, Skipped: g.Skipped,
	}
	if !g.Oldest.IsZero() {
		at := g.Oldest.UTC()
		out.OldestUnacked = &at
	}
	return out
}

// startOf reads a start as package wire has it.
func startOf(text string) (substrate.Start, error) {
	switch text {
	case "earliest":
		return substrate.Start{Kind: substrate.StartEarliest}, nil
	case "latest":
		return substrate.Start{Kind: substrate.StartLatest}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 63); err == nil && n > 0 {
		return substrate.Start{Kind: substrate.StartPosition, Position: n}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.UnixMilli() > 0 {
		return substrate.Start{Kind: substrate.StartTime, Time: at}, nil
	}
	return substrate.Start{}, problem(http.StatusBadRequest, wire.CodeInvalid,
		fmt.Sprintf("start %.40q: want earliest, latest, a position as 4711, or a time as 2030-01-31T12:00:00Z", text))
}

// startText writes a start as startOf reads it.
func startText(s substrate.Start) string {
	if s.Kind == substrate.StartPosition {
		return strconv.FormatUint(s.Position, 10)
	}
	return s.String()
}
