package dispatcher

import (
	"crypto/rand"
	"sync"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/wasi/messaging"
)

// RequestStats count what became of the requests and replies of guests since the dispatcher was made.
type RequestStats struct {
	Waiting    int    // requests that wait for replies now
	Answered   uint64 // requests that got one, at least
	Unanswered uint64 // requests that got none: in time, or before the guest was stopped
	Dropped    uint64 // replies that nobody waits for any more, or that are more than were expected, or than there is room for
	Refused    uint64 // replies to what is no request of a consumer's
}

// inquiry is a request whose guest waits for replies.
type inquiry struct {
	of      *inquiries
	address string // that replies are sent to
	tenant  string
	want    int
	enough  chan struct{} // closed when as many replies came as are wanted

	request string // id of its message
	replies []messaging.Message
	bytes   int64 // of the replies
}

// inquiries are the requests that wait for replies, in this process. A reply comes from memory: it is handed over once the
// handling that it belongs to was committed, and it is nobody's once the one who asked is gone. It is safe for concurrent use.
type inquiries struct {
	mu        sync.Mutex
	waiting   map[string]*inquiry // by address
	perTenant map[string]int
	stats     RequestStats
}

func newInquiries() *inquiries {
	return &inquiries{waiting: make(map[string]*inquiry), perTenant: make(map[string]int)}
}

// open begins to wait for replies to the message of that id, at an address that nobody can guess, if fewer than most of
// the tenant do. It must be closed, or forgotten. The error is a *limits.Error.
func (q *inquiries) open(tenant, request string, want, most int) (*inquiry, error) {
	in := &inquiry{of: q, address: rand.Text(), tenant: tenant, request: request, want: want, enough: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := limits.Check(limits.NameTenantWaiting, int64(q.perTenant[tenant]+1), int64(most)); err != nil {
		return nil, err
	}
	if err := limits.Check(limits.NameWaiting, int64(len(q.waiting)+1), limits.WaitingRequests); err != nil {
		return nil, err
	}
	q.waiting[in.address] = in
	q.perTenant[tenant]++
	return in, nil
}

// close ends the waiting, and returns the replies that came.
func (in *inquiry) close() []messaging.Message {
	in.forget()
	q := in.of
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(in.replies) > 0 {
		q.stats.Answered++
	} else {
		q.stats.Unanswered++
	}
	return in.replies
}

// forget ends the waiting for what was not asked.
func (in *inquiry) forget() {
	q := in.of
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, in.address)
	if q.perTenant[in.tenant]--; q.perTenant[in.tenant] == 0 {
		delete(q.perTenant, in.tenant)
	}
}

// deliver hands a reply over, if somebody still waits for it.
func (q *inquiries) deliver(r *reply) {
	size := replyBytes(r.message)
	q.mu.Lock()
	defer q.mu.Unlock()
	in := q.waiting[r.address]
	if in == nil || len(in.replies) == in.want || in.bytes+size > limits.ReplyBytes {
		q.stats.Dropped++
		return
	}
	in.replies = append(in.replies, r.message)
	in.bytes += size
	if len(in.replies) == in.want {
		close(in.enough)
	}
}

// isAnothers reports whether the address is that of another request than the message of that id.
func (q *inquiries) isAnothers(address, tenant, request string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	in := q.waiting[address]
	return in != nil && (in.tenant != tenant || in.request != request)
}

func (q *inquiries) refused() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Refused++
}

func (q *inquiries) count() RequestStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Waiting = len(q.waiting)
	return s
}

// replyBytes is what a reply counts for.
func replyBytes(m messaging.Message) int64 {
	n := int64(len(m.ContentType)) + int64(len(m.Data))
	for _, p := range m.Metadata {
		n += int64(len(p.Key)) + int64(len(p.Value))
	}
	return n
}
