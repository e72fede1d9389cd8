module github.com/longshore/longshore/examples/orders/guests

go 1.26.0

require github.com/longshore/longshore/guests/go v0.0.0

replace github.com/longshore/longshore/guests/go => ../../../guests/go
