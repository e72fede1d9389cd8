module github.com/longshore/longshore/guests/go

go 1.26.0
