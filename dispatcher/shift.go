package dispatcher

import (
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
)

// shift is what a consumer claimed at once. One goroutine takes it from its claim to its settlements: it verifies the messages,
// one after the other, leaves each job to a worker, and settles what workers are done with, many jobs in one commit, which costs
// little more than that of one. So nobody is woken for a message by itself.
//
// Where calls are short, what is done waits for others of the shift: until it is limits.SettleTogether messages, no other is
// to come, or limits.SettleWait is over.
type shift struct {
	consumer *consumer
	phases   phases
	jobs     []*job
	leases   *leases // of all that was claimed

	mu    sync.Mutex
	left  int    // jobs that are not done
	done  []*job // that nobody works on any more, to be settled
	size  room   // messages of them, and payload bytes of what they publish
	hurry bool   // they wait for no others
	due   chan struct{}
	timer *time.Timer // runs while they wait
}

func (c *consumer) newShift(p phases) *shift {
	t := time.NewTimer(limits.SettleWait)
	t.Stop()
	return &shift{
		consumer: c, phases: p, leases: newLeases(p.settle, c.queue, c.Lease), due: make(chan struct{}, 1), timer: t,
	}
}

// add adds a job before the shift is worked on.
func (s *shift) add(j *job) {
	s.jobs = append(s.jobs, j)
	s.left++
}

// begin starts the work on the shift.
func (s *shift) begin(inFlight *sync.WaitGroup) {
	messages := 0
	for _, j := range s.jobs {
		messages += j.size.messages
	}
	s.consumer.condition.inFlight(messages)
	inFlight.Add(1)
	s.consumer.crew.do(func() {
		defer inFlight.Done()
		s.work()
	})
}

// work takes the shift through its steps.
func (s *shift) work() {
	defer s.timer.Stop()
	c := s.consumer
	for _, j := range s.jobs {
		c.screenAll(j)
		s.leave(j)
	}
	stop := s.phases.claim.Done()
	for {
		jobs, more := s.take()
		switch {
		case len(jobs) > 0:
			c.settleAll(s.phases, jobs)
			c.endAll(jobs)
		case !more:
			return
		default:
			stop = s.wait(stop)
		}
	}
}

// leave leaves a job to a worker, if anything of it goes on.
func (s *shift) leave(j *job) {
	if !j.goesOn() {
		s.finish(j)
		return
	}
	j.turn.assign(j)
	if err := j.held(); err != nil {
		j.give(err)
	}
}

// wait waits until there is something to settle. Once stop is closed, what no worker has begun is not begun; then it returns
// nil.
func (s *shift) wait(stop <-chan struct{}) <-chan struct{} {
	select {
	case <-s.due:
	case <-s.timer.C:
		s.mu.Lock()
		s.hurry = true
		s.mu.Unlock()
	case <-stop:
		for _, j := range s.jobs {
			j.give(s.phases.claim.Err())
		}
		return nil
	}
	return stop
}

// take returns what is to be settled now, and whether there is more to come.
func (s *shift) take() (jobs []*job, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isDue() {
		return nil, s.left > 0
	}
	jobs, s.done, s.size, s.hurry = s.done, nil, room{}, false
	s.timer.Stop()
	return jobs, s.left > 0
}

// finish notes that nobody works on a job any more.
func (s *shift) finish(j *job) {
	size, patient := j.toSettle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left--
	s.done = append(s.done, j)
	s.size = s.size.plus(size)
	s.hurry = s.hurry || !patient
	if s.isDue() {
		select {
		case s.due <- struct{}{}:
		default:
		}
	} else if len(s.done) == 1 {
		s.timer.Reset(limits.SettleWait)
	}
}

// isDue reports whether what is done waits for no others.
func (s *shift) isDue() bool {
	return len(s.done) > 0 &&
		(s.left == 0 || s.hurry || s.size.messages >= limits.SettleTogether || s.size.bytes >= limits.SettleTogetherBytes)
}

// toSettle returns how much there is to settle of a job, and whether that may wait for others: its calls were short.
func (j *job) toSettle() (size room, patient bool) {
	patient = len(j.runs) > 0
	for _, r := range j.runs {
		patient = patient && r.outcome.Wall < limits.SettleWaitCalls
		for i := range r.published {
			size.bytes += int64(len(r.published[i].Message.Data))
		}
	}
	size.messages = len(j.leases)
	return size, patient
}

// A job is the work of its turn.

// held implements work.
func (j *job) held() error {
	if err := j.shift.phases.claim.Err(); err != nil {
		return err
	}
	return j.ctx.Err()
}

// do implements work.
func (j *job) do() {
	c := j.shift.consumer
	j.each(c.begin)
	c.invoke(j.shift.phases, j)
}

// over implements work.
func (j *job) over(err error) {
	if err != nil {
		j.all(finding{end: notStarted})
	}
	j.shift.finish(j)
}

// give takes a job from the queue for a worker, for a reason. One that a worker has is left to it.
func (j *job) give(why error) {
	if j.turn.withdraw(j) {
		j.over(why)
	}
}

// lost notes that a lease of the job is lost, or that it can't be told.
func (j *job) lost(cause error) {
	j.lose(cause)
	j.give(cause)
}
