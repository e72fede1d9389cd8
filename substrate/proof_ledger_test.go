package substrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// proofLedger follows what a child reported, and says what a log may hold after it was killed.
type proofLedger struct {
	workers [proofWorkers]proofHistory
	lines   int
	digests map[string]string
	faults  []string
	opened  bool
	// Counts of what went wrong, and of what was checked.
	lost, redelivered, corrupt int
	checked                    int // messages compared
}

// proofHistory is what one worker did since its log was opened.
type proofHistory struct {
	base  proofState // before the first step
	steps []*proofCall
}

// proofCall is a step with the lines at which it began and ended. Its result is nil until it has ended.
type proofCall struct {
	begun      *proofStep
	result     *proofStep
	start, end int
}

// proofState is what a worker's topics hold.
type proofState struct {
	live map[string]proofFound
	done map[string]struct{}
}

func newProofLedger() *proofLedger {
	l := &proofLedger{digests: map[string]string{}}
	for w := range l.workers {
		l.workers[w].base = proofState{live: map[string]proofFound{}, done: map[string]struct{}{}}
	}
	return l
}

// take notes a line of a report.
func (l *proofLedger) take(s proofStep) {
	l.lines++
	switch {
	case s.Fault != "":
		l.faults = append(l.faults, s.Fault)
		return
	case s.Kind == "opening":
		return
	case s.Kind == "opened":
		l.opened = true
		return
	}
	h := &l.workers[s.Worker]
	if !s.Done {
		for _, m := range s.Messages {
			l.digests[m.ID] = m.Digest
		}
		h.steps = append(h.steps, &proofCall{begun: &s, start: l.lines})
		return
	}
	for _, taken := range s.Taken {
		if l.digests[taken.ID] != taken.Digest {
			l.corrupt++
			l.faults = append(l.faults, fmt.Sprintf("message %s was delivered altered", taken.ID))
		}
	}
	c := h.steps[len(h.steps)-1]
	c.result, c.end = &s, l.lines
}

// inFlight counts the steps that have not ended, by kind.
func (l *proofLedger) inFlight() map[string]int {
	counts := map[string]int{}
	for w := range l.workers {
		if steps := l.workers[w].steps; len(steps) > 0 && steps[len(steps)-1].result == nil {
			counts[steps[len(steps)-1].begun.Kind]++
		}
	}
	return counts
}

// floors returns how many steps of each worker must have survived: after the end of the process all that were answered,
// after a power cut those that are answered for the disk, and all that had ended before such a one began.
func (l *proofLedger) floors(powerCut bool) (floors [proofWorkers]int) {
	flushed := 0 // line of the begin of the last step that was answered for the disk
	for w := range l.workers {
		for _, c := range l.workers[w].steps {
			if c.result != nil && c.result.durable() {
				flushed = max(flushed, c.start)
			}
		}
	}
	for w := range l.workers {
		for i, c := range l.workers[w].steps {
			if c.result != nil && (!powerCut || c.result.durable() || c.end < flushed) {
				floors[w] = i + 1
			}
		}
	}
	return floors
}

// apply changes the state by a step that has ended, or by one that has not and whose outcome follows from what was asked.
func (s proofState) apply(c *proofCall) {
	b := c.begun
	for _, v := range b.Settled {
		m := s.live[v.ID]
		m.Leased = false
		switch v.Verdict {
		case Ack:
			delete(s.live, v.ID)
			s.done[v.ID] = struct{}{}
			continue
		case Release:
			m.Attempts--
		case Bury:
			m.Dead, m.Reason = true, ""
		case Retry:
		}
		if v.Reason != "" {
			m.Reason = v.Reason
		}
		s.live[v.ID] = m
	}
	for _, m := range b.Messages {
		s.live[m.ID] = proofFound{ID: m.ID, Topic: m.Topic, Digest: m.Digest}
	}
	switch b.Kind {
	case "redrive":
		m := s.live[b.ID]
		m.Dead, m.Reason, m.Attempts = false, "", 0
		m.Redriven++
		s.live[b.ID] = m
	case "discard":
		delete(s.live, b.ID)
		s.done[b.ID] = struct{}{}
	case "claim":
		if c.result != nil {
			s.applyClaim(c.result)
		}
	}
}

func (s proofState) applyClaim(r *proofStep) {
	for _, taken := range r.Taken {
		m := s.live[taken.ID]
		m.Attempts, m.Leased = taken.Attempt, true
		s.live[taken.ID] = m
	}
	for _, id := range r.Buried {
		m := s.live[id]
		m.Dead = true
		if m.Reason == "" {
			m.Reason = ReasonMaxAttempts
		}
		s.live[id] = m
	}
}

// differences compares the state with what was found. If a claim had not ended, its messages may have an attempt more, or
// be dead if that would have been one too many.
func (s proofState) differences(found map[string]proofFound, claiming int, excused map[string]struct{}) (diff []string) {
	for id, want := range s.live {
		if has(excused, id) {
			continue
		}
		got, ok := found[id]
		if !ok {
			diff = append(diff, fmt.Sprintf("%s is missing (%+v)", id, want))
			continue
		}
		if want.Leased { // no handler ran: the end of the process took the attempt back
			want.Leased = false
			want.Attempts--
		}
		if claiming > 0 && !want.Dead {
			switch {
			case got.Dead && want.Attempts >= claiming:
				want.Dead = true
				if want.Reason == "" {
					want.Reason = ReasonMaxAttempts
				}
			case got.Attempts == want.Attempts+1:
				want.Attempts++
			}
		}
		got.Position = 0
		if !got.Dead { // only dead letters say how often they were redriven
			got.Redriven = want.Redriven
		}
		if got != want {
			diff = append(diff, fmt.Sprintf("%s: %+v, want %+v", id, got, want))
		}
	}
	for id := range found {
		if _, ok := s.live[id]; !ok && !has(excused, id) {
			diff = append(diff, fmt.Sprintf("%s is there (done: %t)", id, has(s.done, id)))
		}
	}
	return diff
}

func has(set map[string]struct{}, id string) bool {
	_, ok := set[id]
	return ok
}

func (s proofState) clone() proofState { return proofState{maps.Clone(s.live), maps.Clone(s.done)} }

// check compares what was found after the end of the process, or after a power cut, with what the log may hold, and returns
// what is wrong. What was found is what the next process begins with.
func (l *proofLedger) check(f *proofFindings, powerCut bool) (wrong []string) {
	return l.compare(f, l.floors(powerCut), nil)
}

// compare compares what was found with what the log may hold if of each worker so many steps must have survived. The
// messages that are excused are left out.
func (l *proofLedger) compare(f *proofFindings, floors [proofWorkers]int, excused map[string]struct{}) (wrong []string) {
	wrong = append(wrong, l.faults...)
	if f.Refused+f.Fault != "" {
		return append(wrong, "the log does not open: "+f.Refused+f.Fault)
	}
	byWorker := l.sort(f, &wrong)
	var survived [proofWorkers][2]int
	var next [proofWorkers]proofState
	for w := range l.workers {
		low, high, state, faults := l.checkWorker(w, floors[w], byWorker[w], excused)
		survived[w], next[w] = [2]int{low, high}, state
		for _, c := range l.workers[w].steps[:low] {
			if c.result != nil && c.result.Last >= f.Probe {
				wrong = append(wrong, fmt.Sprintf("position %d was given twice", f.Probe))
			}
		}
		wrong = append(wrong, faults...)
	}
	wrong = append(wrong, l.checkOrder(survived)...)
	for w := range l.workers {
		l.workers[w] = proofHistory{base: next[w]}
	}
	return wrong
}

// sort gives what was found to the workers, and checks what must hold of each message.
func (l *proofLedger) sort(f *proofFindings, wrong *[]string) (byWorker [proofWorkers]map[string]proofFound) {
	for w := range byWorker {
		byWorker[w] = map[string]proofFound{}
	}
	if f.Lost > 0 {
		*wrong = append(*wrong, fmt.Sprintf("%d messages are counted and not delivered", f.Lost))
	}
	for _, m := range f.Found {
		l.checked++
		var w int
		if _, err := fmt.Sscanf(m.Topic, "w%d/", &w); err != nil {
			continue
		}
		if _, twice := byWorker[w][m.ID]; twice {
			*wrong = append(*wrong, m.ID+" is there twice")
		}
		if m.Digest != "" && m.Digest != l.digests[m.ID] { // "" is noticed: its record does not check
			l.corrupt++
			*wrong = append(*wrong, fmt.Sprintf("%s has another payload than was published", m.ID))
		}
		byWorker[w][m.ID] = m
	}
	return byWorker
}

// checkWorker finds the numbers of steps that may have survived: at least floor, and such that the state after them is what
// was found. It returns the least and the greatest of them, and the state.
func (l *proofLedger) checkWorker(
	w, floor int, found map[string]proofFound, excused map[string]struct{},
) (low, high int, state proofState, faults []string) {
	h := &l.workers[w]
	state = h.base.clone()
	for _, c := range h.steps[:floor] {
		state.apply(c)
	}
	atFloor, best := state.clone(), state.clone()
	nearest := state.differences(found, 0, excused)
	low, high = -1, -1
	if len(nearest) == 0 {
		low, high = floor, floor
	}
	for i, c := range h.steps[floor:] {
		claiming := 0
		if c.result == nil {
			claiming = c.begun.Attempts
		}
		state.apply(c)
		diff := state.differences(found, claiming, excused)
		if len(diff) == 0 {
			if low < 0 {
				low = floor + i + 1
			}
			high, best = floor+i+1, state.clone()
		}
		if len(diff) < len(nearest) {
			nearest = diff
		}
	}
	if low < 0 {
		l.count(atFloor, state, found)
		slices.Sort(nearest)
		return floor, floor, best, append(faults, fmt.Sprintf("worker %d: after %d to %d steps, at best:\n\t%s\n\tlast steps:\n%s",
			w, floor, len(h.steps), strings.Join(nearest, "\n\t"), h.tail()))
	}
	if unflushed := l.unflushed(w, high); unflushed > proofUnflushed {
		faults = append(faults, fmt.Sprintf("worker %d: %d messages were not on disk: at most %d may be", w, unflushed, proofUnflushed))
	}
	best.adopt(found)
	return low, high, best, faults
}

// adopt takes over what was found, where an unfinished claim leaves it open.
func (s proofState) adopt(found map[string]proofFound) {
	for id, m := range found {
		m.Position = 0
		if !m.Dead {
			m.Redriven = s.live[id].Redriven
		}
		s.live[id] = m
	}
}

// unflushed counts the messages of answered steps that did not survive.
func (l *proofLedger) unflushed(w, survived int) (n int) {
	for _, c := range l.workers[w].steps[survived:] {
		if c.result != nil && c.begun.Kind != "claim" && c.begun.Kind != "extend" {
			n += len(c.begun.Messages) + len(c.begun.Settled)
		}
	}
	return n
}

// count counts what was lost and what came back.
func (l *proofLedger) count(floor, last proofState, found map[string]proofFound) {
	for id := range floor.live {
		_, there := found[id]
		if _, may := last.live[id]; may && !there {
			l.lost++
		}
	}
	for id := range floor.done {
		if _, back := found[id]; back {
			l.redelivered++
		}
	}
}

// checkOrder checks that what survived is a prefix of what the log did: a step that survived began after another had ended,
// so that one survived too.
func (l *proofLedger) checkOrder(survived [proofWorkers][2]int) (wrong []string) {
	begun := 0 // the latest line at which a step began that has survived for certain
	for w := range l.workers {
		if n := survived[w][0]; n > 0 && l.workers[w].steps[n-1].changes() {
			begun = max(begun, l.workers[w].steps[n-1].start)
		}
	}
	for w := range l.workers {
		for _, c := range l.workers[w].steps[survived[w][1]:] {
			if c.result != nil && c.end < begun {
				wrong = append(wrong, fmt.Sprintf("worker %d: step %d was lost, although later ones of others survived", w, c.begun.Number))
			}
		}
	}
	return wrong
}

// changes reports whether one can see of the step that it survived.
func (c *proofCall) changes() bool {
	return len(c.begun.Messages)+len(c.begun.Settled) > 0 || c.begun.ID != "" || c.result != nil && len(c.result.Taken) > 0
}

func (h *proofHistory) tail() string {
	var b strings.Builder
	for _, c := range h.steps[max(0, len(h.steps)-4):] {
		fmt.Fprintf(&b, "\t%+v\n\t\t-> %+v\n", c.begun, c.result)
	}
	return b.String()
}
