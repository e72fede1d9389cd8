package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// Admin calls the admin interface.
type Admin struct{ caller }

// NewAdmin returns a client of the host whose admin socket is at path. Nothing is connected yet.
func NewAdmin(path string) *Admin {
	return &Admin{newCaller("http://localhost", "admin socket "+path, "unix", path)}
}

// topicPath returns the path of a topic and what is below it.
func topicPath(tenant, topic, below string) string {
	return "/admin/v1/tenants/" + url.PathEscape(tenant) + "/topics/" + url.PathEscape(topic) + below
}

// Host says which host answers.
func (a *Admin) Host(ctx context.Context) (out wire.HostInfo, err error) {
	err = a.call(ctx, http.MethodGet, "/admin/v1/host", nil, &out)
	return out, err
}

// Backup writes a backup of the log to w. What was written before an error is none.
func (a *Admin) Backup(ctx context.Context, w io.Writer) error {
	return a.stream(ctx, "/admin/v1/backup", w)
}

// Consumers lists the consumers.
func (a *Admin) Consumers(ctx context.Context) ([]wire.Consumer, error) {
	var out wire.ConsumerList
	err := a.call(ctx, http.MethodGet, "/admin/v1/consumers", nil, &out)
	return out.Consumers, err
}

// Topics lists the topics of a tenant, or of all if tenant is "".
func (a *Admin) Topics(ctx context.Context, tenant string) ([]wire.TopicStats, error) {
	path := "/admin/v1/topics"
	if tenant != "" {
		path += "?" + url.Values{"tenant": {tenant}}.Encode()
	}
	var out wire.TopicList
	err := a.call(ctx, http.MethodGet, path, nil, &out)
	return out.Topics, err
}

// Topic returns the counts of one topic.
func (a *Admin) Topic(ctx context.Context, tenant, topic string) (out wire.TopicStats, err error) {
	err = a.call(ctx, http.MethodGet, topicPath(tenant, topic, ""), nil, &out)
	return out, err
}

// Publish publishes msgs, all or none, as the user that runs this process.
func (a *Admin) Publish(ctx context.Context, tenant, topic string, msgs []wire.NewMessage) ([]wire.Receipt, error) {
	var out wire.Published
	err := a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/messages"), wire.Batch{Messages: msgs}, &out)
	return out.Receipts, err
}

// Peek returns up to limit messages of a topic's default lane with positions above after.
func (a *Admin) Peek(ctx context.Context, tenant, topic string, after uint64, limit int) ([]wire.Peeked, error) {
	return a.PeekLane(ctx, tenant, topic, wire.DefaultLane, after, limit)
}

// PeekLane returns up to limit messages of a lane with positions above after.
func (a *Admin) PeekLane(ctx context.Context, tenant, topic, lane string, after uint64, limit int) ([]wire.Peeked, error) {
	q := url.Values{"lane": {lane}, "after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(limit)}}
	var out wire.PeekedList
	err := a.call(ctx, http.MethodGet, topicPath(tenant, topic, "/messages?"+q.Encode()), nil, &out)
	return out.Messages, err
}

// Tail calls yield for each message that is published to a topic after the one at a position, or, if that is 0, from now on,
// until yield returns an error, which it returns. A host that stops ends it with an *UnreachableError.
func (a *Admin) Tail(ctx context.Context, tenant, topic string, after uint64, yield func(wire.Event) error) error {
	q := url.Values{}
	if after > 0 {
		q.Set("after", strconv.FormatUint(after, 10))
	}
	if err := a.events(ctx, topicPath(tenant, topic, "/tail?"+q.Encode()), yield); err != nil {
		return err
	}
	return &UnreachableError{Address: a.address, Err: errors.New("the host has stopped")}
}

// Replay calls yield for each message of a topic that is stored, until yield returns an error, which it returns: from a
// position on, or if that is 0, of what was published at a time or later, or if that is zero too, all.
func (a *Admin) Replay(ctx context.Context, tenant, topic string, from uint64, since time.Time, yield func(wire.Event) error) error {
	q := url.Values{}
	switch {
	case from > 0:
		q.Set("from", strconv.FormatUint(from, 10))
	case !since.IsZero():
		q.Set("since", since.Format(time.RFC3339Nano))
	}
	return a.events(ctx, topicPath(tenant, topic, "/replay?"+q.Encode()), yield)
}

// Pause pauses or resumes a topic.
func (a *Admin) Pause(ctx context.Context, tenant, topic string, paused bool) error {
	var out wire.Pause
	return a.call(ctx, http.MethodPut, topicPath(tenant, topic, "/paused"), wire.Pause{Paused: paused}, &out)
}

// PauseLane pauses or resumes one lane of a topic.
func (a *Admin) PauseLane(ctx context.Context, tenant, topic, lane string, paused bool) error {
	var out wire.Pause
	q := url.Values{"lane": {lane}}
	return a.call(ctx, http.MethodPut, topicPath(tenant, topic, "/paused?"+q.Encode()), wire.Pause{Paused: paused}, &out)
}

// Groups lists the consumer groups of a topic.
func (a *Admin) Groups(ctx context.Context, tenant, topic string) ([]wire.Group, error) {
	var out wire.GroupList
	err := a.call(ctx, http.MethodGet, topicPath(tenant, topic, "/groups"), nil, &out)
	return out.Groups, err
}

// CreateGroup makes a consumer group.
func (a *Admin) CreateGroup(ctx context.Context, tenant, topic string, g wire.NewGroup) (out wire.GroupMade, err error) {
	err = a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/groups"), g, &out)
	return out, err
}

// ResetGroup moves a group's cursor to a start, and returns the group as it is then.
func (a *Admin) ResetGroup(ctx context.Context, tenant, topic, group, start string) (out wire.Group, err error) {
	err = a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/groups/"+url.PathEscape(group)+"/reset"), wire.GroupReset{Start: start}, &out)
	return out, err
}

// DeleteGroup ends a group and says what it had. Without one it does nothing.
func (a *Admin) DeleteGroup(ctx context.Context, tenant, topic, group string) (out wire.GroupDeleted, err error) {
	err = a.call(ctx, http.MethodDelete, topicPath(tenant, topic, "/groups/"+url.PathEscape(group)), nil, &out)
	return out, err
}

// DeadLetters lists the dead letters that f selects, over as many pages as there are.
func (a *Admin) DeadLetters(ctx context.Context, tenant, topic string, f wire.Filter) ([]wire.DeadLetter, error) {
	const page = 1000
	var all []wire.DeadLetter
	q := url.Values{}
	for k, v := range map[string]string{"id": f.ID, "lane": f.Lane, "older_than": f.OlderThan, "reason": f.Reason} {
		if v != "" {
			q.Set(k, v)
		}
	}
	for {
		limit := page
		if f.Limit > 0 {
			limit = min(page, f.Limit-len(all))
		}
		q.Set("limit", strconv.Itoa(limit))
		var out wire.DeadLetterList
		if err := a.call(ctx, http.MethodGet, topicPath(tenant, topic, "/dead-letters?"+q.Encode()), nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.DeadLetters...)
		if out.Next == 0 || f.Limit > 0 && len(all) >= f.Limit {
			return all, nil
		}
		q.Set("after", strconv.FormatUint(out.Next, 10))
		q.Set("after_lane", out.NextLane)
	}
}

// DeadLetter returns one dead letter with its message: that of a lane, or of the first in which the message is dead if lane is "".
func (a *Admin) DeadLetter(ctx context.Context, tenant, topic, id, lane string) (out wire.DeadLetterDetail, err error) {
	below := "/dead-letters/" + url.PathEscape(id)
	if lane != "" {
		below += "?" + url.Values{"lane": {lane}}.Encode()
	}
	err = a.call(ctx, http.MethodGet, topicPath(tenant, topic, below), nil, &out)
	return out, err
}

// Redrive makes the dead letters that m selects ready again.
func (a *Admin) Redrive(ctx context.Context, tenant, topic string, m wire.Move) (out wire.Moved, err error) {
	err = a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/dead-letters/redrive"), m, &out)
	return out, err
}

// Discard deletes the dead letters that m selects.
func (a *Admin) Discard(ctx context.Context, tenant, topic string, m wire.Move) (out wire.Moved, err error) {
	err = a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/dead-letters/discard"), m, &out)
	return out, err
}

// Fences lists the fence marks of a lane, over as many pages as there are.
func (a *Admin) Fences(ctx context.Context, tenant, topic, lane string) ([]wire.Fence, error) {
	var all []wire.Fence
	q := url.Values{"lane": {lane}}
	for {
		var out wire.FenceList
		if err := a.call(ctx, http.MethodGet, topicPath(tenant, topic, "/fences?"+q.Encode()), nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Fences...)
		if out.Next == "" {
			return all, nil
		}
		q.Set("after", out.Next)
	}
}

// ResetFences forgets the fence marks that r names.
func (a *Admin) ResetFences(ctx context.Context, tenant, topic string, r wire.FenceReset) (out wire.Moved, err error) {
	err = a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/fences/reset"), r, &out)
	return out, err
}

// Quarantine lists the quarantine of a topic, over as many pages as there are.
func (a *Admin) Quarantine(ctx context.Context, tenant, topic string) ([]wire.QuarantineEntry, error) {
	var all []wire.QuarantineEntry
	q := url.Values{}
	for {
		var out wire.QuarantineList
		if err := a.call(ctx, http.MethodGet, topicPath(tenant, topic, "/quarantine?"+q.Encode()), nil, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Entries...)
		if out.Next == "" {
			return all, nil
		}
		q.Set("after", out.Next)
	}
}

// QuarantineEntry returns one entry of the quarantine with its bytes.
func (a *Admin) QuarantineEntry(ctx context.Context, tenant, topic, id string) (out wire.QuarantineDetail, err error) {
	err = a.call(ctx, http.MethodGet, topicPath(tenant, topic, "/quarantine/"+url.PathEscape(id)), nil, &out)
	return out, err
}

// DiscardQuarantined deletes the entries that f selects, with their bytes.
func (a *Admin) DiscardQuarantined(ctx context.Context, tenant, topic string, f wire.QuarantineFilter) (out wire.Moved, err error) {
	err = a.call(ctx, http.MethodPost, topicPath(tenant, topic, "/quarantine/discard"), f, &out)
	return out, err
}

// Policy returns the policy in force on a topic.
func (a *Admin) Policy(ctx context.Context, tenant, topic string) (out wire.PolicyView, err error) {
	out.Tag, err = a.callTagged(ctx, http.MethodGet, topicPath(tenant, topic, "/policy"), "", nil, &out)
	return out, err
}

// SetPolicy sets the bounds that c gives. tag, if it isn't "", must be that of the policy in force.
func (a *Admin) SetPolicy(ctx context.Context, tenant, topic, tag string, c wire.PolicyChange) (out wire.PolicyView, err error) {
	out.Tag, err = a.callTagged(ctx, http.MethodPatch, topicPath(tenant, topic, "/policy"), tag, c, &out)
	return out, err
}

// UnsetPolicy goes back to the host config's policy. tag, if it isn't "", must be that of the policy in force.
func (a *Admin) UnsetPolicy(ctx context.Context, tenant, topic, tag string) (out wire.PolicyView, err error) {
	out.Tag, err = a.callTagged(ctx, http.MethodDelete, topicPath(tenant, topic, "/policy"), tag, nil, &out)
	return out, err
}

// Tenants lists the tenants.
func (a *Admin) Tenants(ctx context.Context) ([]wire.Tenant, error) {
	var out wire.TenantList
	err := a.call(ctx, http.MethodGet, "/admin/v1/tenants", nil, &out)
	return out.Tenants, err
}

// Tenant returns what there is of a tenant.
func (a *Admin) Tenant(ctx context.Context, name string) (out wire.Tenant, err error) {
	err = a.call(ctx, http.MethodGet, "/admin/v1/tenants/"+url.PathEscape(name), nil, &out)
	return out, err
}

// DeleteTenant deletes all of a tenant, and returns what that was.
func (a *Admin) DeleteTenant(ctx context.Context, name string) (out wire.Tenant, err error) {
	err = a.call(ctx, http.MethodDelete, "/admin/v1/tenants/"+url.PathEscape(name), nil, &out)
	return out, err
}
