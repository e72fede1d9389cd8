module dispatchguests

go 1.26.0

require (
	github.com/extism/go-pdk v1.1.3
	github.com/longshore/longshore/guests/go v0.0.0
)

replace github.com/longshore/longshore/guests/go => ../../../../guests/go
