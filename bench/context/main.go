// Command context measures what the signed context of a message costs: sealed when it is published and verified when it is
// delivered, with its token amortised over the messages of its window, and beside that the path from publish to
// acknowledgement on a log on this disk.
//
// It prints lines `figure <name> <value>`:
//
//	context_us_per_message       seal and verify of 1 KiB, in µs of one processor: the median of rounds
//	context_jws_us_per_message   the same where seals are signatures
//	context_share_of_cycle_1     the first, divided by what a message takes from publish to acknowledgement, one at a time
//	context_share_of_cycle_64    the same of batches of 64 from one caller, which is as cheap as a message gets
//	context_envelope_bytes       what an envelope adds to a stored message
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

const (
	payloadBytes = 1_024
	principals   = 16
	// perSecond is how many messages a principal publishes a second: a token serves those of a minute.
	perSecond = 100
)

func main() {
	short := flag.Bool("short", false, "measure less")
	flag.Parse()
	rounds, messages := 9, 50_000
	if *short {
		rounds, messages = 3, 10_000
	}
	if err := run(context.Background(), rounds, messages); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds, messages int) error {
	hmac, size, err := contextCost(signedctx.HS256, rounds, messages)
	if err != nil {
		return err
	}
	jws, _, err := contextCost(signedctx.EdDSA, rounds, messages/10)
	if err != nil {
		return err
	}
	shares := map[int]float64{}
	for _, batch := range []int{1, 64} {
		cycle, err := cycleCost(ctx, rounds, batch*messages/640, batch)
		if err != nil {
			return err
		}
		figures.Note("publish to acknowledgement, %d at a time: %.1f µs a message", batch, cycle)
		shares[batch] = hmac / cycle
	}
	figures.Print("context_us_per_message", hmac)
	figures.Print("context_jws_us_per_message", jws)
	figures.Print("context_share_of_cycle_1", shares[1])
	figures.Print("context_share_of_cycle_64", shares[64])
	figures.Print("context_envelope_bytes", float64(size))
	return nil
}

// contextCost returns the median µs of a seal and its verification, by contexts of their own, and the bytes of an envelope.
func contextCost(seal signedctx.Algorithm, rounds, messages int) (micros float64, size int, err error) {
	now := time.Now()
	clock := func() time.Time { return now }
	sealer, verifier, err := contexts(seal, clock)
	if err != nil {
		return 0, 0, err
	}
	var all []float64
	b := signedctx.Binding{Tenant: "acme", Topic: "orders", ContentType: "application/json", Payload: make([]byte, payloadBytes)}
	for range rounds {
		began := time.Now()
		for i := range messages {
			now = now.Add(time.Second / perSecond / principals)
			b.MessageID = strconv.Itoa(i)
			who := signedctx.Principal{Tenant: "acme", Subject: "local:" + strconv.Itoa(i%principals)}
			e, err := sealer.Seal(who, b)
			if err != nil {
				return 0, 0, err
			}
			if _, err := verifier.Verify(e, b); err != nil {
				return 0, 0, err
			}
			size = len(e)
		}
		all = append(all, float64(time.Since(began).Nanoseconds())/1e3/float64(messages))
	}
	return figures.Median(all), size, nil
}

// contexts returns one that seals and one that verifies, as two hosts with the same keys are.
func contexts(seal signedctx.Algorithm, clock func() time.Time) (sealer, verifier *signedctx.Context, err error) {
	token, err := signedctx.GenerateKey(signedctx.EdDSA)
	if err != nil {
		return nil, nil, err
	}
	key, err := signedctx.GenerateKey(seal)
	if err != nil {
		return nil, nil, err
	}
	ring, err := signedctx.NewKeyring([]signedctx.Key{token}, []signedctx.Key{key})
	if err != nil {
		return nil, nil, err
	}
	sealer, errS := signedctx.New(ring, "bench", clock)
	verifier, errV := signedctx.New(ring, "bench", clock)
	return sealer, verifier, errors.Join(errS, errV)
}

// cycleCost returns the median µs of a message from its publish to its acknowledgement, durable, so many at a time.
func cycleCost(ctx context.Context, rounds, messages, batch int) (micros float64, err error) {
	dir, err := os.MkdirTemp("", "longshore-context-")
	if err != nil {
		return 0, err
	}
	log, err := substrate.Open(ctx, substrate.Options{Dir: dir})
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { err = errors.Join(err, log.Close(), os.RemoveAll(dir)) }()
	payload := make([]byte, payloadBytes)
	var all []float64
	for range rounds {
		began := time.Now()
		for done := 0; done < messages; done += batch {
			if err := cycle(ctx, log, payload, batch); err != nil {
				return 0, err
			}
		}
		all = append(all, float64(time.Since(began).Nanoseconds())/1e3/float64(messages))
	}
	return figures.Median(all), nil
}

func cycle(ctx context.Context, log *substrate.Log, payload []byte, batch int) error {
	msgs := make([]substrate.Message, batch)
	for i := range msgs {
		msgs[i] = substrate.Message{ID: log.MintID(), Tenant: "acme", Topic: "orders", Payload: payload}
	}
	if _, err := log.Publish(ctx, msgs...); err != nil {
		return err
	}
	got, err := log.Claim(ctx, substrate.ClaimRequest{
		Tenant: "acme", Topic: "orders", MaxMessages: batch, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 1,
	})
	if err != nil {
		return err
	}
	done := make([]substrate.Settlement, len(got.Deliveries))
	for i, d := range got.Deliveries {
		done[i] = substrate.Settlement{Lease: d.Lease, Verdict: substrate.Ack}
	}
	return log.Settle(ctx, done, nil)
}
