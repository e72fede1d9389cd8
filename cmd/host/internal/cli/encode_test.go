package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
)

// strange is text as a stranger may send it: every kind of what has no visible form.
func strange() string {
	text := "a: b # \"c\" \\ ä \U0001F600\x00\x1b[31m\t\r\n\x7f \u0085 \u009f \u00ad \u200b \u200f \u2028 \u2029 \u202a \u202e \u2066 \u2069 \ufeff"
	return text + " \U000e0001\n"
}

func TestOutputForPrograms(t *testing.T) {
	type report struct {
		Text  string           `json:"text"`
		Plain string           `json:"plain"`
		Word  string           `json:"word"`
		N     uint64           `json:"n"`
		None  *int             `json:"none"`
		Yes   bool             `json:"yes"`
		Empty []string         `json:"empty"`
		List  []map[string]any `json:"list"`
	}
	in := report{Text: strange(), Plain: "plain", Word: "true", N: 1<<63 + 1, Yes: true, Empty: []string{}, List: []map[string]any{{"k": strange()}}}
	for format, decode := range map[string]func([]byte, any) error{
		formatJSON: json.Unmarshal,
		formatYAML: func(text []byte, out any) error {
			var m map[string]any
			if err := yaml.Unmarshal(text, &m); err != nil {
				return err
			}
			again, err := json.Marshal(m)
			if err != nil {
				return err
			}
			return json.Unmarshal(again, out)
		},
	} {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, result{value: in}.print(&b, format))
			require.False(t, strings.ContainsFunc(strings.ReplaceAll(b.String(), "\n", ""), telemetry.Hidden), "%q", b.String())
			require.Contains(t, b.String(), `\u202e`)
			var out report
			require.NoError(t, decode(b.Bytes(), &out), b.String())
			require.Equal(t, in, out)
		})
	}
}

func TestCounted(t *testing.T) {
	require.Equal(t, "0 consumers", counted(0, "consumer"))
	require.Equal(t, "1 consumer", counted(1, "consumer"))
	require.Equal(t, "2 dead letters", counted(2, "dead letter"))
}
