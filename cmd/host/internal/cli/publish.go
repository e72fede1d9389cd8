package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
)

// Bounds of one request of publish.
const (
	publishBatchMessages = 1000
	publishBatchBytes    = 4 << 20
)

// publishFlags are the flags of publish.
type publishFlags struct {
	tenant, contentType string
	data                string
	dataSet             bool
	files, metadata     []string
	count               int
	options             publishOptions
}

func (c *command) publishCommand() *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish TOPIC",
		Short: "Publish messages to a topic, from stdin, --data or --file",
		Example: `  echo '{"order":"A-1"}' | longshore publish orders --content-type application/json
  longshore publish orders --file a.json --file b.json
  longshore publish orders --data hello -n 100 --metadata source=test
  longshore publish orders --file a.json --delay 5m --ttl 24h --idempotency-key order-A-1
  longshore publish orders --data paid --ordering-key order-A-1 --priority 5 --fence leader:7`,
		Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.dataSet = cmd.Flags().Changed("data")
			if err := f.options.given(cmd); err != nil {
				return err
			}
			return c.publish(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.tenant, "tenant", defaultTenant, "tenant of the topic")
	cmd.Flags().StringVar(&f.contentType, "content-type", "", "media type of the payload")
	cmd.Flags().StringVar(&f.data, "data", "", "the payload")
	cmd.Flags().StringArrayVar(&f.files, "file", nil, "file that holds a payload, - for stdin; may be repeated, one message each")
	cmd.Flags().StringArrayVar(&f.metadata, "metadata", nil, "key=value; may be repeated")
	cmd.Flags().IntVarP(&f.count, "count", "n", 1, "publish each so many times")
	f.options.addFlags(cmd)
	return cmd
}

// publish publishes in batches, each of them whole, and prints the receipts. If one fails, those before it stay
// published, and their receipts are printed.
func (c *command) publish(ctx context.Context, topic string, f publishFlags) error {
	if f.count < 1 {
		return usage(fmt.Errorf("-n %d: want at least 1", f.count))
	}
	if f.options.key != nil && (f.count > 1 || len(f.files) > 1) {
		return usage(errors.New("--idempotency-key is of one message, and this publishes more: " +
			"all but the first would be duplicates; publish each with a key of its own"))
	}
	metadata, err := parsePairs(f.metadata)
	if err != nil {
		return err
	}
	if err := f.checkTexts(); err != nil {
		return err
	}
	payloads, err := c.payloads(f)
	if err != nil {
		return err
	}
	admin, err := c.admin()
	if err != nil {
		return err
	}
	b := &batcher{ctx: ctx, admin: admin, tenant: f.tenant, topic: topic}
	for i := 0; err == nil && i < f.count; i++ {
		for _, p := range payloads {
			m := wire.NewMessage{ContentType: f.contentType, Metadata: metadata, DataBase64: p}
			f.options.set(&m)
			if err = b.add(m); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = b.flush()
	}
	if err == nil {
		c.publishNotes(b)
	}
	if len(b.receipts) > 0 || err == nil {
		return errors.Join(err, c.print(receiptsResult(b.receipts)))
	}
	return err
}

// publishNotes says what the receipts don't: that nothing was stored, or that nothing will take it.
func (c *command) publishNotes(b *batcher) {
	if (wire.Published{Receipts: b.receipts}).AllDuplicates() {
		c.say("a duplicate: a message was published under this idempotency key before; this is its receipt")
		return
	}
	consumers, err := b.admin.Consumers(b.ctx)
	if err != nil {
		return // what was asked for is done
	}
	if !slices.ContainsFunc(consumers, func(k wire.Consumer) bool { return k.Tenant == b.tenant && k.Topic == b.topic }) {
		c.say("note: no consumer takes %s of tenant %s; what is published there waits", b.topic, b.tenant)
	}
}

// payloads reads what is to be published.
func (c *command) payloads(f publishFlags) ([][]byte, error) {
	if f.dataSet && len(f.files) > 0 {
		return nil, usage(errors.New("--data and --file exclude each other; give one of them"))
	}
	if f.dataSet {
		return [][]byte{[]byte(f.data)}, nil
	}
	if len(f.files) == 0 {
		f.files = []string{"-"}
	}
	var out [][]byte
	for _, name := range f.files {
		p, err := c.readPayload(name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// readPayload reads one file, no further than a payload may be long.
func (c *command) readPayload(name string) (payload []byte, err error) {
	in := c.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage(err)
		}
		defer func() { _ = file.Close() }()
		in = file
	} else if c.InTerminal {
		c.say("reading the payload from the terminal; end it with Ctrl-D")
	}
	payload, err = io.ReadAll(io.LimitReader(in, limits.MessageCeilingBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the payload: %w", err)
	}
	if len(payload) > limits.MessageCeilingBytes {
		return nil, usage(fmt.Errorf("%s: the payload is over %d bytes, more than any topic takes", name, limits.MessageCeilingBytes))
	}
	return payload, nil
}

// parsePairs reads key=value flags in their order.
func parsePairs(flags []string) ([]wire.Pair, error) {
	var out []wire.Pair
	for _, s := range flags {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, usage(fmt.Errorf("--metadata %q: want key=value", s))
		}
		out = append(out, wire.Pair{Key: k, Value: v})
	}
	return out, nil
}

// batcher gathers messages into requests.
type batcher struct {
	ctx           context.Context // of the command
	admin         *client.Admin
	tenant, topic string

	batch    []wire.NewMessage
	bytes    int
	receipts []wire.Receipt
}

func (b *batcher) add(m wire.NewMessage) error {
	if len(b.batch) == publishBatchMessages || len(b.batch) > 0 && b.bytes+len(m.DataBase64) > publishBatchBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.batch = append(b.batch, m)
	b.bytes += len(m.DataBase64)
	return nil
}

func (b *batcher) flush() error {
	got, err := b.admin.Publish(b.ctx, b.tenant, b.topic, b.batch)
	if err != nil {
		return fmt.Errorf("publish to %s: %w", b.topic, err)
	}
	b.receipts = append(b.receipts, got...)
	b.batch, b.bytes = b.batch[:0], 0
	return nil
}

func receiptsResult(receipts []wire.Receipt) result {
	r := result{value: wire.Published{Receipts: receipts}, head: []string{"ID", "POSITION"}}
	for _, x := range receipts {
		position := "-" // of a delayed message
		if x.Position > 0 {
			position = strconv.FormatUint(x.Position, 10)
		}
		r.rows = append(r.rows, []string{x.ID, position})
		r.names = append(r.names, x.ID)
	}
	return r
}
