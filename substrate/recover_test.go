package substrate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

func TestOpen(t *testing.T) {
	t.Run("FindsWhatAnOrderlyCloseLeft", func(t *testing.T) {
		dir := t.TempDir()
		for i := range 6 { // more often than there are segments
			l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
			require.NoError(t, err)
			publish(t, l, testTopic, fmt.Sprint(i))
			require.Equal(t, int64(i+1), stats(t, l, testTopic).Ready)
			require.NoError(t, l.Close())
		}
	})

	t.Run("NeverUsesAPositionOrAnIDTwice", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		last := publish(t, l, testTopic, "a", "b")[1]
		settle(t, l, claimOne(t, l, testTopic), Ack, "")
		n := reopenCrashed(t, dir)
		next := publish(t, n, testTopic, "c")[0]
		require.Equal(t, last.Position+1, next.Position)
		require.Less(t, last.ID[14:], next.ID[14:])
	})

	t.Run("RecoversCrashesWhileItRecovers", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		for range 10 {
			dir = crash(t, dir)
			l = openLog(t, dir)
		}
		require.Equal(t, []string{"a"}, payloads(claim(t, l, testTopic, 10)))
	})

	t.Run("SaysWhoHoldsTheFolder", func(t *testing.T) {
		dir := t.TempDir()
		openLog(t, dir)
		_, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment, LockWait: time.Millisecond})
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, fmt.Sprintf("pid %d", os.Getpid()))
	})

	t.Run("WaitsForAnotherProcessToLeave", func(t *testing.T) {
		dir := t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		closed := make(chan error, 1)
		time.AfterFunc(50*time.Millisecond, func() { closed <- l.Close() })
		openLog(t, dir)
		require.NoError(t, <-closed)
	})

	t.Run("RefusesAStoreWhoseJournalIsGone", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		require.Equal(t, Recovered{}, l.Recovered())
		publish(t, l, testTopic, "stored")
		storeUpToDate(t, l)
		publish(t, l, testTopic, "in the journal alone")
		whole, broken := crash(t, dir), crash(t, dir)
		require.NoError(t, os.RemoveAll(filepath.Join(broken, "journal")))
		_, err := Open(t.Context(), Options{Dir: broken, SegmentBytes: testSegment})
		require.ErrorIs(t, err, ErrJournalMissing)
		require.Equal(t, Recovered{Topics: 1, Backlog: 2, Frames: 1}, openLog(t, whole).Recovered())
	})

	t.Run("TakesAStoreThatWasKilledBeforeItHadAJournal", func(t *testing.T) {
		dir := crash(t, func() string {
			dir := t.TempDir()
			openLog(t, dir)
			return dir
		}())
		for range 3 {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "journal"))) // as after a kill between the store and it
			l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
	})

	t.Run("RefusesAStoreWithADamagedTable", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publishN(t, l, testTopic, 2_000)
		storeUpToDate(t, l)
		require.NoError(t, l.store.Reclaim()) // makes tables
		broken := crash(t, dir)
		tables, err := filepath.Glob(filepath.Join(broken, "store", "*.sst"))
		require.NoError(t, err)
		require.NotEmpty(t, tables)
		f, err := os.OpenFile(tables[0], os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(make([]byte, 512), 4096)
		require.NoError(t, errors.Join(err, f.Close()))
		_, err = Open(t.Context(), Options{Dir: broken, SegmentBytes: testSegment})
		require.ErrorIs(t, err, ErrDamaged)
	})

	t.Run("RefusesAStateOfANewerVersion", func(t *testing.T) {
		_, err := decodeTopic(TopicName{"a", "b"}, []byte{formatVersion + 1, 0})
		require.ErrorContains(t, err, fmt.Sprintf("version %d", formatVersion+1))
		_, err = decodeFrame(kindPublish, []byte{formatVersion + 1})
		require.ErrorContains(t, err, fmt.Sprintf("version %d", formatVersion+1))
	})

	t.Run("StopsForGoodWhenTheJournalFails", func(t *testing.T) {
		l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: testSegment})
		require.NoError(t, err)
		publish(t, l, testTopic, "a")
		require.NoError(t, l.journal.Close())
		_, err = l.Publish(t.Context(), l.newMessage(testTopic, "b"))
		require.ErrorIs(t, err, ErrClosed)
		<-l.Done()
		require.Error(t, l.Err())
		_, err = l.Claim(t.Context(), claimRequest(testTopic, 1))
		require.ErrorIs(t, err, ErrClosed)
		_ = l.Close()
	})
}

func TestJournalIsRecycledWhileMoreThanItHoldsGoesThrough(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	payload := string(make([]byte, 50_000))
	for range 3 * limits.JournalSegments * testSegment / len(payload) {
		publish(t, l, testTopic, payload)
		settle(t, l, claimOne(t, l, testTopic), Ack, "")
	}
	publish(t, l, testTopic, "last")
	n := reopenCrashed(t, dir)
	require.Equal(t, []string{"last"}, payloads(claim(t, n, testTopic, 10)))
	out, err := exec.CommandContext(t.Context(), "du", "-sb", filepath.Join(dir, "journal")).Output()
	require.NoError(t, err)
	var bytes int64
	_, err = fmt.Sscan(string(out), &bytes)
	require.NoError(t, err)
	require.LessOrEqual(t, bytes, int64(limits.JournalSegments*testSegment+64*limits.KiB))
}

// modelMessage is what the model knows about a message.
type modelMessage struct {
	state    string // "fresh", "waiting", "leased", "dead"
	attempts int
	reason   string
	lease    Lease
	ended    func() // of its handler, while that runs
	suspect  bool
}

// stops ends the handler of a message that is about to be settled.
func (m *modelMessage) stops() {
	if m.ended != nil {
		m.ended()
		m.ended = nil
	}
}

// voided is what an Open makes of a message that was leased.
func (m *modelMessage) voided(crashed bool) {
	m.state = "waiting"
	if m.ended != nil && crashed {
		m.suspect = true
		m.reason = cmp.Or(m.reason, ReasonCrashed)
	} else {
		m.attempts--
	}
	m.ended = nil
}

// model is the topic as a user sees it. Its machine runs the same calls on it and on a log, through crashes.
type model struct {
	messages map[string]*modelMessage
	stale    []Lease
	acked    uint64
}

func (m *model) count(state string) (n int64) {
	for _, msg := range m.messages {
		if msg.state == state {
			n++
		}
	}
	return n
}

// claimable returns how many messages may be claimed, and how many of them only alone.
func (m *model) claimable() (n, suspects int64) {
	for _, msg := range m.messages {
		if msg.state == "fresh" || msg.state == "waiting" {
			n++
			if msg.suspect {
				suspects++
			}
		}
	}
	return n, suspects
}

func (m *model) pick(rt *rapid.T, state string) (string, *modelMessage) {
	var ids []string
	for id, msg := range m.messages {
		if msg.state == state {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		rt.Skip("no message is " + state)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(rt, state)
	return id, m.messages[id]
}

func TestLogAgreesWithAModelThroughCrashes(t *testing.T) {
	lowerChecks(t, 15)
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(rt, err)
		defer func() { require.NoError(rt, l.Close()) }()
		m := &model{messages: map[string]*modelMessage{}}

		settleOne := func(rt *rapid.T, v Verdict, apply func(msg *modelMessage, id string)) {
			id, msg := m.pick(rt, "leased")
			msg.stops()
			outbox := 0
			if v == Ack {
				outbox = rapid.IntRange(0, 2).Draw(rt, "outbox")
			}
			var msgs []Message
			for range outbox {
				msgs = append(msgs, l.newMessage(testTopic, "from "+id))
			}
			require.NoError(rt, l.Settle(t.Context(), []Settlement{{Lease: msg.lease, Verdict: v, Reason: "why"}}, msgs))
			m.stale = append(m.stale, msg.lease)
			apply(msg, id)
			for _, out := range msgs {
				m.messages[out.ID] = &modelMessage{state: "fresh"}
			}
		}
		reopen := func(rt *rapid.T, to string, crashed bool) {
			require.NoError(rt, l.Close())
			l, err = Open(t.Context(), Options{Dir: to, SegmentBytes: testSegment})
			require.NoError(rt, err)
			dir = to
			for _, msg := range m.messages {
				if msg.state == "leased" {
					m.stale = append(m.stale, msg.lease)
					msg.voided(crashed)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(rt *rapid.T) {
				var msgs []Message
				for i := range rapid.IntRange(1, 5).Draw(rt, "n") {
					msgs = append(msgs, l.newMessage(testTopic, fmt.Sprint("payload ", i)))
					m.messages[msgs[i].ID] = &modelMessage{state: "fresh"}
				}
				_, err := l.Publish(t.Context(), msgs...)
				require.NoError(rt, err)
			},
			"claim": func(rt *rapid.T) {
				r := claimRequest(testTopic, rapid.IntRange(1, 4).Draw(rt, "n"))
				claimable, suspects := m.claimable()
				got, err := l.Claim(t.Context(), r)
				require.NoError(rt, err)
				for _, b := range got.Buried {
					msg := m.messages[b.ID]
					require.Equal(rt, "waiting", msg.state)
					require.Equal(rt, r.MaxAttempts, msg.attempts)
					require.Equal(rt, cmp.Or(msg.reason, ReasonMaxAttempts), b.Reason)
					msg.state = "dead"
					claimable--
					if msg.suspect {
						suspects--
					}
				}
				switch {
				case len(got.Deliveries) > 0 && got.Deliveries[0].Suspect:
					require.Len(rt, got.Deliveries, 1)
				case claimable == suspects:
					require.Zero(rt, suspects)
					require.Empty(rt, got.Deliveries)
				default:
					require.Equal(rt, min(claimable-suspects, int64(r.MaxMessages)), int64(len(got.Deliveries)))
				}
				for _, d := range got.Deliveries {
					msg := m.messages[d.Message.ID]
					require.Equal(rt, msg.suspect, d.Suspect)
					require.Contains(rt, []string{"fresh", "waiting"}, msg.state)
					require.Equal(rt, msg.attempts+1, d.Attempt)
					require.Equal(rt, msg.reason, d.PreviousReason)
					msg.state, msg.attempts, msg.lease = "leased", d.Attempt, d.Lease
				}
			},
			"ack": func(rt *rapid.T) {
				settleOne(rt, Ack, func(_ *modelMessage, id string) { delete(m.messages, id); m.acked++ })
			},
			"run": func(rt *rapid.T) {
				_, msg := m.pick(rt, "leased")
				msg.stops()
				msg.ended, err = l.Start(msg.lease)
				require.NoError(rt, err)
			},
			"retry": func(rt *rapid.T) {
				settleOne(rt, Retry, func(msg *modelMessage, _ string) {
					msg.state, msg.reason, msg.suspect = "waiting", "why", false
				})
			},
			"release": func(rt *rapid.T) {
				settleOne(rt, Release, func(msg *modelMessage, _ string) {
					msg.state, msg.reason = "waiting", "why"
					msg.attempts--
				})
			},
			"bury": func(rt *rapid.T) {
				settleOne(rt, Bury, func(msg *modelMessage, _ string) { msg.state = "dead" })
			},
			"redrive": func(rt *rapid.T) {
				id, msg := m.pick(rt, "dead")
				r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Filter: DeadLetterFilter{ID: id}})
				require.NoError(rt, err)
				require.Equal(rt, 1, r.Moved)
				*msg = modelMessage{state: "waiting"}
			},
			"discard": func(rt *rapid.T) {
				id, _ := m.pick(rt, "dead")
				n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{ID: id})
				require.NoError(rt, err)
				require.Equal(rt, 1, n)
				delete(m.messages, id)
			},
			"stale": func(rt *rapid.T) {
				if len(m.stale) == 0 {
					rt.Skip("no stale lease")
				}
				lease := rapid.SampledFrom(m.stale).Draw(rt, "lease")
				require.ErrorIs(rt, l.Settle(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, nil), ErrLeaseLost)
			},
			"store": func(rt *rapid.T) { require.NoError(rt, l.submit(t.Context(), &request{})) },
			"close": func(rt *rapid.T) { reopen(rt, dir, false) },
			"crash": func(rt *rapid.T) {
				reopen(rt, crash(t, dir), true)
			},
			"": func(rt *rapid.T) {
				s, exists := l.Stats(testTenant, testTopic)
				if !exists {
					require.Empty(rt, m.messages)
					return
				}
				require.Equal(rt, m.count("fresh"), s.Ready)
				require.Equal(rt, m.count("waiting"), s.Delayed)
				require.Equal(rt, m.count("leased"), s.Leased)
				require.Equal(rt, m.count("dead"), s.DeadLetters)
				require.Equal(rt, m.acked, s.Acked)
				require.Equal(rt, s.Backlog() == 0, s.Oldest.IsZero())
			},
		})
		peeked, err := l.Peek(t.Context(), testTenant, testTopic, "", 0, limits.DeadLetterPage)
		if len(m.messages) > 0 {
			require.NoError(rt, err)
			require.Len(rt, peeked, int(m.count("fresh")+m.count("waiting")+m.count("leased")))
		}
	})
}
