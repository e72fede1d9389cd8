package messaging

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The layouts as independent bindings generators compute them.
func TestShape(t *testing.T) {
	sizes := []struct {
		name                 string
		shape                shape
		size, align, payload uint32
	}{
		{"string", textShape, 8, 4, 0},
		{"tuple<string, string>", pairShape, 16, 4, 0},
		{"option<string>", optionTextShape, 12, 4, 4},
		{"option<list>", optionListShape, 12, 4, 4},
		{"error", errorShape, 12, 4, 4},
		{"result<_, error>", unitResultShape, 16, 4, 4},
		{"result<own<client>, error>", clientResultShape, 16, 4, 4},
		{"fence", fenceShape, 16, 8, 0},
		{"publish-options", publishOptionsShape, 144, 8, 0},
		{"option<publish-options>", optionPublishOptionsShape, 152, 8, 8},
		{"outgoing", outgoingShape, 168, 8, 0},
		{"arguments of publish", publishArgsShape, 168, 8, 0},
		{"limit", limitShape, 40, 8, 0},
		{"publish-error", publishErrorShape, 48, 8, 8},
		{"receipt", receiptShape, 20, 4, 0},
		{"result<receipt, publish-error>", receiptResultShape, 56, 8, 8},
		{"result<list, publish-error>", batchResultShape, 56, 8, 8},
		{"result<list<own<message>>, error>", messagesResultShape, 16, 4, 4},
		{"claims", claimsShape, 56, 8, 0},
		{"delivery-info", deliveryInfoShape, 240, 8, 0},
		{"option<delivery-info>", optionDeliveryInfoShape, 248, 8, 8},
		{"outcome", outcomeShape, 24, 8, 8},
		{"result<list<outcome>, error>", outcomesResultShape, 16, 4, 4},
		{"broker-message", brokerMessageShape, 28, 4, 0},
		{"result<broker-message, string>", brokerResultShape, 32, 4, 4},
		{"result<_, string>", textErrorShape, 12, 4, 4},
		{"result<option<string>, config error>", configResultShape, 16, 4, 4},
		{"keyvalue error", storeErrorShape, 12, 4, 4},
		{"key-response", keyResponseShape, 24, 8, 0},
		{"key-response of draft2", keyResponseShape2, 20, 4, 0},
		{"result<own<bucket>, keyvalue error>", bucketResultShape, 16, 4, 4},
		{"result<option<list<u8>>, keyvalue error>", valueResultShape, 16, 4, 4},
		{"result<_, keyvalue error>", storedResultShape, 16, 4, 4},
		{"result<bool, keyvalue error>", existsResultShape, 16, 4, 4},
		{"result<key-response, keyvalue error>", keysResultShape, 32, 8, 8},
		{"result<key-response, keyvalue error> of draft2", keysResultShape2, 24, 4, 4},
	}
	for _, s := range sizes {
		t.Run(s.name, func(t *testing.T) {
			require.Equal(t, s.size, s.shape.size, "size")
			require.Equal(t, s.align, s.shape.align, "alignment")
			require.Equal(t, s.payload, s.shape.payload, "payload")
		})
	}
	offsets := []struct {
		name   string
		shape  shape
		fields map[string]uint32
	}{
		{"publish-options", publishOptionsShape, map[string]uint32{
			"delay": 0, "ttl": 16, "deadline": 32, "priority": 48, "idempotency-key": 52, "ordering-key": 64, "fence": 80,
			"required-features": 104, "target": 112, "cause": 124, "extensions": 136,
		}},
		{"outgoing", outgoingShape, map[string]uint32{"topic": 0, "message": 8, "options": 16}},
		{"arguments of publish", publishArgsShape, map[string]uint32{"client": 0, "topic": 4, "message": 12, "options": 16}},
		{"limit", limitShape, map[string]uint32{"limit": 0, "actual": 8, "retry-after": 16, "extensions": 32}},
		{"claims", claimsShape, map[string]uint32{
			"tenant": 0, "subject": 8, "issuer": 16, "token-id": 24, "issued-at": 32, "extra": 40, "extensions": 48,
		}},
		{"delivery-info", deliveryInfoShape, map[string]uint32{
			"id": 0, "topic": 8, "attempt": 16, "max-attempts": 20, "previous-reason": 24, "group": 36, "published-at": 48,
			"expires-at": 56, "deadline": 72, "priority": 88, "idempotency-key": 92, "ordering-key": 104, "fence": 120,
			"parent": 144, "hops": 156, "claims": 160, "trace": 224, "extensions": 232,
		}},
		{"key-response", keyResponseShape, map[string]uint32{"keys": 0, "cursor": 8}},
		{"key-response of draft2", keyResponseShape2, map[string]uint32{"keys": 0, "cursor": 8}},
		{"broker-message", brokerMessageShape, map[string]uint32{"subject": 0, "body": 8, "reply-to": 16}},
		{"receipt", receiptShape, map[string]uint32{"id": 0, "duplicate": 8, "extensions": 12}},
		{"tuple<string, string>", pairShape, map[string]uint32{"key": 0, "value": 8}},
	}
	for _, o := range offsets {
		t.Run(o.name+" fields", func(t *testing.T) {
			require.Len(t, o.shape.fields, len(o.fields))
			for name, at := range o.fields {
				require.Equal(t, at, o.shape.at(name), name)
			}
		})
	}
}

func TestShape_RecordsNeverOverlapAndAreAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t, 3)
		require.Zero(t, s.size%s.align)
		var end uint32
		for _, f := range s.fields {
			require.GreaterOrEqual(t, f.offset, end)
			require.Less(t, f.offset-end, f.shape.align, "no more padding than needed")
			require.Zero(t, f.offset%f.shape.align)
			end = f.offset + f.shape.size
		}
		require.LessOrEqual(t, end, s.size)
	})
}

func drawShape(t *rapid.T, depth int) shape {
	kinds := 2
	if depth > 0 {
		kinds = 4
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		return scalarOf(rapid.SampledFrom([]uint32{1, 2, 4, 8}).Draw(t, "size"))
	case 2:
		return listShape()
	case 3:
		return optionOf(drawShape(t, depth-1))
	}
	fields := make([]field, rapid.IntRange(1, 5).Draw(t, "fields"))
	for i := range fields {
		fields[i].shape = drawShape(t, depth-1)
	}
	return recordOf(fields...)
}
