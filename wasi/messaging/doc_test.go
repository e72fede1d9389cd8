package messaging

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented are the types whose layouts the page on the ABI draws, in its order.
func documented() []struct {
	name  string
	shape shape
} {
	return []struct {
		name  string
		shape shape
	}{
		{"string, list<T>", textShape},
		{"tuple<string, string>", pairShape},
		{"option<string>", optionTextShape},
		{"error", errorShape},
		{"result<_, error>", unitResultShape},
		{"result<own<client>, error>", clientResultShape},
		{"result<list<own<message>>, error>", messagesResultShape},
		{"option<u64>", optionU64Shape},
		{"fence", fenceShape},
		{"publish-options", publishOptionsShape},
		{"option<publish-options>", optionPublishOptionsShape},
		{"outgoing", outgoingShape},
		{"the parameters of publish", publishArgsShape},
		{"limit", limitShape},
		{"publish-error", publishErrorShape},
		{"receipt", receiptShape},
		{"result<receipt, publish-error>", receiptResultShape},
		{"result<list<…>, publish-error>", batchResultShape},
		{"claims", claimsShape},
		{"delivery-info", deliveryInfoShape},
		{"option<delivery-info>", optionDeliveryInfoShape},
		{"outcome", outcomeShape},
		{"result<list<outcome>, error>", outcomesResultShape},
		{"keyvalue error", storeErrorShape},
		{"key-response", keyResponseShape},
		{"key-response of draft2", keyResponseShape2},
		{"result<own<bucket>, keyvalue error>", bucketResultShape},
		{"result<option<list<u8>>, keyvalue error>", valueResultShape},
		{"result<_, keyvalue error>", storedResultShape},
		{"result<bool, keyvalue error>", existsResultShape},
		{"result<key-response, keyvalue error>", keysResultShape},
		{"result<key-response, keyvalue error> of draft2", keysResultShape2},
	}
}

// row is the line of a type in the page's table.
func row(name string, s shape) string {
	var parts []string
	switch s.kind {
	case record:
		for _, f := range s.fields {
			parts = append(parts, fmt.Sprintf("%s@%d", f.name, f.offset))
		}
	case variant:
		parts = []string{"case@0", fmt.Sprintf("payload@%d", s.payload)}
	case list:
		parts = []string{"pointer@0", "length@4"}
	case scalar:
	}
	return fmt.Sprintf("| %s | %d | %d | %s |\n", name, s.size, s.align, strings.Join(parts, " "))
}

func TestThePageOnTheABI(t *testing.T) {
	b, err := os.ReadFile("../../docs/guest-abi.md")
	require.NoError(t, err)
	page := string(b)
	t.Run("DrawsTheComputedLayouts", func(t *testing.T) {
		table := "| type | size | alignment | where its parts are |\n|---|---|---|---|\n"
		for _, d := range documented() {
			table += row(d.name, d.shape)
		}
		require.Contains(t, page, table)
	})
	t.Run("NamesEveryInterface", func(t *testing.T) {
		for _, i := range interfaces() {
			require.Contains(t, page, "`"+i.name, i.name)
		}
		for _, h := range handlers() {
			require.Contains(t, page, "`"+legacy.export(h.iface, h.version, h.name)+"`")
		}
	})
	t.Run("GivesTheSignatureOfEveryFunctionOfMessaging", func(t *testing.T) {
		for _, i := range append(messagingInterfaces(), ownInterfaces()...) {
			if i.draft == DraftB || strings.HasPrefix(i.name, "wasmcloud:") {
				continue
			}
			for _, f := range i.funcs {
				require.Contains(t, page, fmt.Sprintf("| `%s` | %s |", f.name, signature(valueTypes(f.params), valueTypes(f.results))))
			}
		}
	})
}
