package filter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

func order() Message {
	return Message{
		Topic: "orders/eu", ContentType: "application/json", Subject: "local:1000",
		Metadata: map[string]string{"region": "EU-West", "size": "12"}, Claims: map[string]string{"role": "clerk"},
	}
}

func TestMatch(t *testing.T) {
	for source, want := range map[string]bool{
		`topic == "orders/eu"`:                             true,
		`topic startsWith "orders/" and not false`:         true,
		`metadata["region"] == "EU-West"`:                  true,
		`metadata.region == "EU-West"`:                     true,
		`lower(metadata.region) in ["eu-west", "eu-east"]`: true,
		`metadata.absent == ""`:                            true,
		`"absent" in metadata`:                             false,
		`int(metadata.size) > 12`:                          false,
		`int(metadata.size) * 2 >= 24 ? true : false`:      true,
		`topic matches "^orders/[a-z]{2}$"`:                true,
		`topic contains "us"`:                              false,
		`claims.role == "clerk" && subject != ""`:          true,
		`claims.role == "admin" || len(topic) > 100`:       false,
		`content_type endsWith "json"`:                     true,
	} {
		f, err := Compile(source)
		require.NoError(t, err, source)
		got, err := f.Match(order())
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}

func TestCompile(t *testing.T) {
	t.Run("WhatIsNotBoundedIsRefused", func(t *testing.T) {
		for source, why := range map[string]string{
			`all(["a"], # == topic)`:                  "not for filters",
			`filter(metadata, true) != nil`:           "not for filters",
			`len(1..1000000) > 1`:                     "a range",
			`repeat("a", 1000000000) == topic`:        `"repeat" is no function here`,
			`let a = topic + topic; a + a == "x"`:     "names of its own",
			`topic[1:2] == "r"`:                       "slices",
			`{"a": 1} == nil`:                         "mappings",
			`topic matches metadata.region`:           "a pattern in quotes",
			`topic matches "(a{500}b{500}){2}"`:       "more than 1000 steps",
			`topic matches "("`:                       "no regular expression",
			`now() > date("2020-01-01")`:              "is no function here",
			`topic`:                                   "bool",
			`payload == "x"`:                          "unknown name payload",
			`topic ==`:                                "unexpected token",
			`topic.length() > 1`:                      "nothing can be called",
			strings.Repeat("true and ", 130) + "true": "more than 256",
			`topic == "` + strings.Repeat("x", limits.FilterBytes) + `"`: "want at most 4096",
		} {
			_, err := Compile(source)
			assert.ErrorContains(t, err, why, "%.60s", source)
			if err != nil {
				assert.Less(t, len(err.Error()), 250)
			}
		}
	})
	t.Run("TheLargestThereMayBe", func(t *testing.T) {
		_, err := Compile(strings.Repeat("true and ", 127) + "true")
		require.NoError(t, err)
		_, err = Compile(`topic == "` + strings.Repeat("x", limits.FilterBytes-11) + `"`)
		require.NoError(t, err)
	})
	t.Run("NothingQuotedIsUnescaped", func(t *testing.T) {
		for _, source := range []string{"topic == \"\x1b[31m", "\x1b[31m(1)", "a\u202eb == 1"} {
			_, err := Compile(source)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, err.Error(), "\u202e")
		}
	})
	t.Run("WhateverIsWrittenEndsSoon", func(t *testing.T) {
		words := []string{"topic", "metadata", ".x", "claims", "==", "+", "(", ")", "and", "not", "in", "[", "]", `"a"`, "1", "..", "matches", "?", ":", "len", "lower", ",", "-", "*", "**"}
		rapid.Check(t, func(t *rapid.T) {
			f, err := Compile(strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 40).Draw(t, "words"), " "))
			if err != nil {
				return
			}
			start := time.Now()
			_, _ = f.Match(order())
			if time.Since(start) > 10*time.Second {
				t.Fatal("it took", time.Since(start))
			}
		})
	})
}

func TestMatchSaysWhatCannotBeComputed(t *testing.T) {
	for _, source := range []string{`int(metadata.region) > 1`, `1 % int(metadata.size + "0" == "120" ? "0" : "1") == 1`} {
		f, err := Compile(source)
		require.NoError(t, err)
		takes, err := f.Match(order())
		require.Error(t, err, source)
		require.False(t, takes)
	}
}
