package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestHost(t *testing.T) {
	t.Run("EmptyFileIsTheDefaults", func(t *testing.T) {
		for _, text := range []string{"", "# nothing\n", "---\n", "{}"} {
			h, err := ParseHost("h.yaml", []byte(text), Overrides{})
			require.NoError(t, err)
			want := DefaultHost()
			want.Tenants, want.Topics = []Tenant{}, []Topic{}
			require.Equal(t, want, h)
		}
	})
	t.Run("NoFileIsTheDefaults", func(t *testing.T) {
		h, err := LoadHost("", Overrides{})
		require.NoError(t, err)
		require.Equal(t, "longshore-data", h.Data)
		require.Equal(t, filepath.Join("longshore-data", "keys"), h.Keys)
		require.Equal(t, filepath.Join("longshore-data", "admin.sock"), h.Listen.Admin)
	})
	t.Run("MissingFileIsNoFaultOfItsText", func(t *testing.T) {
		_, err := LoadHost(filepath.Join(t.TempDir(), "none.yaml"), Overrides{})
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NotErrorAs(t, err, new(Faults))
	})
	t.Run("PathsOfTheFileAreRelativeToIt", func(t *testing.T) {
		h, err := ParseHost("etc/h.yaml", []byte("data: d\nkeys: /k\nlisten: {admin: a.sock}"), Overrides{})
		require.NoError(t, err)
		require.Equal(t, filepath.Join("etc", "d"), h.Data)
		require.Equal(t, "/k", h.Keys)
		require.Equal(t, filepath.Join("etc", "a.sock"), h.Listen.Admin)
	})
	t.Run("EveryKeyIsTaken", func(t *testing.T) {
		h, err := parseHostText(`
data: /d
listen: {http: "[::1]:0"}
log: {level: warn, format: console}
grace: 1m
topics:
  - {topic: a/b, anonymous: true, max_depth: 1, max_rate_per_sec: 2, max_message_bytes: 3KiB, max_unflushed: 4,
    max_priority: 5, idempotency_window: 6s, retention: 7ms, retention_bytes: 8MiB, keep: 0s, default_lane: off, paused: false}
  - {tenant: acme, topic: a/b, default_lane: auto}
`)
		require.NoError(t, err)
		require.Equal(t, "[::1]:0", h.Listen.HTTP)
		require.Equal(t, Log{Level: "warn", Format: "console"}, h.Log)
		require.Equal(t, time.Minute, h.Grace)
		one, two, three, four := int64(1), int64(2), int64(3*limits.KiB), int64(4)
		five, eight, no := int64(5), int64(8*limits.MiB), false
		window, retention, keep := 6*time.Second, 7*time.Millisecond, time.Duration(0)
		require.Equal(t, []Topic{
			{
				Tenant: "default", Topic: "a/b", Anonymous: true, MaxDepth: &one, MaxRatePerSec: &two, MaxMessageBytes: &three, MaxUnflushed: &four,
				MaxPriority: &five, IdempotencyWindow: &window, Retention: &retention, RetentionBytes: &eight, Keep: &keep,
				DefaultLane: "off", Paused: &no,
			},
			{Tenant: "acme", Topic: "a/b", DefaultLane: "auto"},
		}, h.Topics)
	})
	t.Run("GraceIsBounded", func(t *testing.T) {
		for grace, fine := range map[string]bool{"0s": true, "1h": true, "1h1ms": false} {
			_, err := parseHostText("grace: " + grace)
			require.Equal(t, fine, err == nil, grace)
		}
	})
	t.Run("SocketPathIsBounded", func(t *testing.T) {
		longest := "/" + strings.Repeat("s", maxSocketPath-1)
		_, err := parseHostText("listen: {admin: " + longest + "}")
		require.NoError(t, err)
		_, err = parseHostText("listen: {admin: " + longest + "s}")
		require.ErrorContains(t, err, "h.yaml:1:17: listen.admin: the admin socket's path is")
		_, err = ParseHost("h.yaml", nil, Overrides{Flags: Settings{Data: longest}})
		require.ErrorContains(t, err, "flags: --data-dir: the admin socket's path is")
	})
	t.Run("TimesAndSizesOfATopicAreBounded", func(t *testing.T) {
		for text, fine := range map[string]bool{
			"idempotency_window: 0s": true, "idempotency_window: 168h": true, "idempotency_window: 168h1ms": false,
			"retention: 1ms": true, "retention: 0s": false, "retention: 8784h": true, "retention: 8784h1ms": false,
			"keep: 0s": true, "keep: 8784h": true, "keep: 8784h1ms": false,
			"retention_bytes: 1": true, "retention_bytes: 0": false, "retention_bytes: 1048576GiB": true, "retention_bytes: 1125899906842625": false,
			"max_priority: 0": true, "max_priority: 255": true, "max_priority: 256": false,
		} {
			_, err := parseHostText("topics: [{topic: a, " + text + "}]")
			require.Equal(t, fine, err == nil, "%s: %v", text, err)
		}
	})
	t.Run("MessageBytesAreBounded", func(t *testing.T) {
		for size, fine := range map[string]bool{"0": false, "1": true, "32MiB": true, "33554433": false} {
			_, err := parseHostText("topics: [{topic: a, max_message_bytes: " + size + "}]")
			require.Equal(t, fine, err == nil, size)
		}
	})
}

func TestAnonymous(t *testing.T) {
	h, err := parseHostText(`topics:
  - {topic: open, anonymous: true}
  - {topic: shut}
  - {topic: shut-too, anonymous: false}
  - {tenant: acme, topic: both, anonymous: true}
  - {topic: both, anonymous: true}
  - {tenant: acme, topic: theirs, anonymous: true}
  - {topic: theirs}
`)
	require.NoError(t, err)
	t.Run("IsOffUnlessTheTopicSays", func(t *testing.T) {
		for _, topic := range []string{"shut", "shut-too", "unlisted", ""} {
			_, ok := h.AnonymousTenant(topic)
			require.False(t, ok, topic)
			require.False(t, h.AnonymousAllowed("default", topic), topic)
		}
	})
	t.Run("PublishesAsTheTopicsTenant", func(t *testing.T) {
		for topic, want := range map[string]string{"open": "default", "theirs": "acme"} {
			tenant, ok := h.AnonymousTenant(topic)
			require.True(t, ok)
			require.Equal(t, want, tenant)
			require.True(t, h.AnonymousAllowed(want, topic))
		}
		require.False(t, h.AnonymousAllowed("default", "theirs"))
		require.False(t, h.AnonymousAllowed("acme", "open"))
	})
	t.Run("GuessesNoTenantWhereTwoAreOpen", func(t *testing.T) {
		_, ok := h.AnonymousTenant("both")
		require.False(t, ok)
		require.True(t, h.AnonymousAllowed("default", "both"))
		require.True(t, h.AnonymousAllowed("acme", "both"))
	})
}

func TestOverrides(t *testing.T) {
	file := "data: file\nkeys: file\nlisten: {http: file:1, admin: file}\nlog: {level: error, format: console}\ngrace: 1s\n"
	environment := map[string]string{
		"LONGSHORE_DATA": "env", "LONGSHORE_KEYS": "env", "LONGSHORE_LISTEN_HTTP": "env:1", "LONGSHORE_LISTEN_ADMIN": "env",
		"LONGSHORE_LOG_LEVEL": "warn", "LONGSHORE_LOG_FORMAT": "json", "LONGSHORE_GRACE": "2s",
		"LONGSHORE_PORT": "tcp://10.0.0.1:1", "DATA": "other",
	}
	flags := Settings{Data: "flag", Keys: "flag", ListenHTTP: "flag:1", ListenAdmin: "flag", LogLevel: "debug", LogFormat: "console", Grace: "3s"}
	settings := func(t *testing.T, o Overrides) Settings {
		t.Helper()
		h, err := ParseHost("dir/h.yaml", []byte(file), o)
		require.NoError(t, err)
		return Settings{
			Data: h.Data, Keys: h.Keys, ListenHTTP: h.Listen.HTTP, ListenAdmin: h.Listen.Admin,
			LogLevel: h.Log.Level, LogFormat: h.Log.Format, Grace: h.Grace.String(),
		}
	}
	inDir := filepath.Join("dir", "file")
	fromFile := Settings{Data: inDir, Keys: inDir, ListenHTTP: "file:1", ListenAdmin: inDir, LogLevel: "error", LogFormat: "console", Grace: "1s"}
	fromEnvironment := Settings{Data: "env", Keys: "env", ListenHTTP: "env:1", ListenAdmin: "env", LogLevel: "warn", LogFormat: "json", Grace: "2s"}

	t.Run("FileWinsOverDefault", func(t *testing.T) { require.Equal(t, fromFile, settings(t, Overrides{})) })
	t.Run("EnvironmentWinsOverFile", func(t *testing.T) {
		require.Equal(t, fromEnvironment, settings(t, Overrides{Environment: environment}))
	})
	t.Run("FlagsWinOverEnvironment", func(t *testing.T) {
		require.Equal(t, flags, settings(t, Overrides{Flags: flags, Environment: environment}))
	})
	t.Run("EmptyVariableIsNotSet", func(t *testing.T) {
		require.Equal(t, fromFile, settings(t, Overrides{Environment: map[string]string{"LONGSHORE_DATA": ""}}))
	})
	t.Run("ProcessEnvironmentIsNotReadUnasked", func(t *testing.T) {
		t.Setenv("LONGSHORE_DATA", "process")
		require.Equal(t, fromFile, settings(t, Overrides{}))
	})
	t.Run("KeysFollowTheDataFolderThatWins", func(t *testing.T) {
		h, err := ParseHost("h.yaml", []byte("data: /file"), Overrides{Flags: Settings{Data: "/flag"}})
		require.NoError(t, err)
		require.Equal(t, filepath.Join("/flag", "keys"), h.Keys)
	})
	t.Run("FaultsAreNamedByTheirSource", func(t *testing.T) {
		_, err := ParseHost("h.yaml", []byte("grace: 5\n"), Overrides{
			Flags:       Settings{LogLevel: "loud", ListenAdmin: "a\x00b"},
			Environment: map[string]string{"LONGSHORE_GRACE": "2h", "LONGSHORE_LISTEN_HTTP": "80"},
		})
		require.EqualError(t, err, strings.Join([]string{
			`environment: LONGSHORE_GRACE: 2h is too large (want at most 1h)`,
			`environment: LONGSHORE_LISTEN_HTTP: "80" is not valid (want host:port such as 127.0.0.1:7878)`,
			`flags: --log-level: "loud" is not one of the choices (want debug, info, warn or error)`,
			`flags: --socket: "a\x00b" is not valid (want a path)`,
			`h.yaml:1:8: grace: 5 is of the wrong type (want a duration such as 5s, 1m30s or 250ms)`,
		}, "\n"))
	})
}
