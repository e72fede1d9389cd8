// Package csv_test builds the consumer of this example from source and runs files through the real runtime.
package csv_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestCSV(t *testing.T) {
	consumer := guestbuild.Consumers(t, guestbuild.AssemblyScript, ".")["csv"]
	for name, records := range map[string][][]string{
		"PlainFields":             {{"sku", "quantity"}, {"rope", "2"}, {"buoy", "10"}},
		"FieldsWithAllThatIsOdd":  {{"a", `"b"`}, {"x, y", "two\nlines"}, {`he said "no"`, "\ttab \\ ü ✓ 😀"}, {"", ""}},
		"OneColumn":               {{"only"}, {"1"}, {"2"}},
		"AHeaderAlone":            {{"sku", "quantity"}},
		"AsManyRowsAsACallMaySay": append([][]string{{"n"}}, numbers(256)...),
	} {
		for _, crlf := range []bool{false, true} {
			t.Run(name+"/crlf="+strconv.FormatBool(crlf), func(t *testing.T) {
				var file bytes.Buffer
				w := csv.NewWriter(&file)
				require.NoError(t, w.WriteAll(records))
				give := file.Bytes()
				if crlf {
					if name == "FieldsWithAllThatIsOdd" {
						t.Skip("the writer would change the line's end inside of a field")
					}
					give = bytes.ReplaceAll(give, []byte("\n"), []byte("\r\n"))
				}
				o, out := consumer.Deliver(t, messaging.Message{Data: give})
				require.Equal(t, runtime.OK, o.Class, "%s: %s", o.Reason(), o.GuestText)
				require.Len(t, out, len(records)-1)
				for i, row := range out {
					var got map[string]string
					require.NoError(t, json.Unmarshal(row.Message.Data, &got), string(row.Message.Data))
					want := map[string]string{}
					for column, name := range records[0] {
						want[name] = records[i+1][column]
					}
					require.Equal(t, want, got)
					require.Equal(t, "application/json", row.Message.ContentType)
				}
			})
		}
	}
	t.Run("AFileWithAnUnevenRowIsAnErrorAndNothingIsPublished", func(t *testing.T) {
		o, out := consumer.Deliver(t, messaging.Message{Data: []byte("a,b\n1,2\n3\n")})
		require.Equal(t, "guest-error: other", o.Reason())
		require.Equal(t, "row 2: 1 fields, the header has 2", o.GuestText)
		require.Empty(t, out)
	})
	t.Run("AnEmptyFileIsAnError", func(t *testing.T) {
		o, _ := consumer.Deliver(t, messaging.Message{})
		require.Equal(t, "no header", o.GuestText)
	})
	t.Run("MoreRowsThanACallMayPublishAreAnErrorAndNothingIsPublished", func(t *testing.T) {
		var file bytes.Buffer
		require.NoError(t, csv.NewWriter(&file).WriteAll(append([][]string{{"n"}}, numbers(257)...)))
		o, out := consumer.Deliver(t, messaging.Message{Data: file.Bytes()})
		require.Equal(t, "guest-error: other", o.Reason())
		require.Contains(t, o.GuestText, "quota-exceeded: 257 is over the limit of 256")
		require.Empty(t, out)
	})
}

func numbers(n int) (records [][]string) {
	for i := range n {
		records = append(records, []string{strconv.Itoa(i)})
	}
	return records
}
