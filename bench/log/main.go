// Command log measures what the log costs, beside what else one could use, in one run: a preallocated file with a group
// fdatasync (raw: the limit of the disk), and NATS JetStream in this process, with a sync for every message and as it
// comes. Everything is a ratio of things measured in turn, as a median of rounds: absolute figures of a machine say little.
// It prints lines `figure <name> <value>`; what stands beside them on stderr holds for this machine and this minute.
//
// Names of figures: durable_vs_<peer>_<load>, and relaxed_vs_… of topics that are answered before they are on disk, are messages a second of the log divided by those of the peer, where load is
// the number of publishers (c64), or 8 publishers of batches of 100, or 64 publishers to 1,000 topics.
//
// main.go chooses what is run; publish.go, cycle.go, claim.go, parked.go, delay.go and open.go measure one thing each; durable.go,
// raw.go and jetstream.go are what they measure; figures.go computes and prints; profile.go says where the time goes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

const payloadBytes = 1_024

// plan says how much is measured.
type plan struct {
	short       bool
	span        time.Duration // of a round
	repeats     int           // rounds
	claimRounds int
	opens       int
	atMostQuiet time.Duration // before a round
	payload     []byte        // of all messages; nobody changes it
	only        string        // a job, or a load, that alone is measured; "" for all
}

func main() {
	short := flag.Bool("short", false, "measure less, in less than a minute")
	only := flag.String("only", "", "measure only this `job` (claims, publish, cycle, delay, million, parked), or only the publishes of this load (c1, c64, …)")
	profiles := flag.String("profile", "", "write CPU profiles of the log into this `folder` instead of measuring")
	flag.Parse()
	p := newPlan(*short)
	p.only = *only
	if err := run(context.Background(), p, *profiles); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func newPlan(short bool) plan {
	p := plan{
		short: short, span: 2 * time.Second, repeats: 3, claimRounds: 1_000, opens: 3, atMostQuiet: 3 * time.Second,
		payload: make([]byte, payloadBytes),
	}
	if short {
		p.span, p.claimRounds, p.atMostQuiet = 300*time.Millisecond, 200, 300*time.Millisecond
	}
	noise := rand.NewChaCha8([32]byte{})
	_, _ = noise.Read(p.payload) // never fails; the same in every run
	return p
}

func (p plan) quiet() { figures.Quiet(80*time.Millisecond, p.atMostQuiet) }

func run(ctx context.Context, p plan, profiles string) (err error) {
	dir, err := os.MkdirTemp("", "longshore-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if profiles != "" {
		return p.profiles(ctx, dir, profiles)
	}
	ran := false
	for i, job := range p.jobs() {
		if p.only != "" && p.only != job.name {
			continue
		}
		if err := p.apart(ctx, fmt.Sprintf("%s/%d", dir, i), job.run); err != nil {
			return err
		}
		ran = true
	}
	if !ran {
		return fmt.Errorf("there is no job or load %q", p.only)
	}
	return nil
}

// job is one thing to measure, in a folder of its own.
type job struct {
	name string
	run  func(context.Context, string) error
}

// jobs are what there is to measure. A load that is named alone is the publishing job with nothing but that.
func (p plan) jobs() []job {
	jobs := []job{{"claims", p.claimsAt100k}, {"publish", p.publishing}, {"cycle", p.cycling}, {"delay", p.delays}}
	if !p.short {
		jobs = append(jobs, job{"million", p.atMillion}, job{"parked", p.besideParked})
	}
	for _, l := range p.loads() {
		if l.name == p.only {
			jobs = append(jobs, job{l.name, p.publishing})
		}
	}
	return jobs
}

// apart runs a job in a folder of its own and leaves nothing on the disk for the next.
func (p plan) apart(ctx context.Context, dir string, job func(context.Context, string) error) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	start := time.Now()
	defer func() { figures.Note("(%s)", time.Since(start).Round(time.Second)) }()
	return job(ctx, dir)
}
