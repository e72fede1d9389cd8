// Command guest is the stock Go consumer of the tests: what it does is in the message.
package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// calls is state that must not survive a message.
var calls int

// cells are more of it.
var cells = map[string]string{}

// run does what the command says. What it returns becomes the error "other" of the handler, unless it is "".
func run(command string) string {
	verb, rest, _ := strings.Cut(command, " ")
	calls++
	switch verb {
	case "echo":
		publish("out", []byte(strings.ToUpper(rest)))
	case "remember":
		old := cells["cell"]
		cells["cell"] = rest
		return "call " + strconv.Itoa(calls) + ", cell " + strconv.Quote(old)
	case "remember-then-panic":
		cells["cell"] = rest
		panic(rest)
	case "spin":
		for i := 0; ; i++ {
			sink = append(sink[:0], byte(i))
		}
	case "recurse":
		recurse(0)
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return err.Error()
		}
		start := time.Now()
		time.Sleep(d)
		if took := time.Since(start); took < d {
			return "slept only " + took.String()
		}
	case "hoard":
		for {
			hoard = append(hoard, make([]byte, 1<<20))
		}
	case "exit":
		os.Exit(7)
	case "log":
		os.Stdout.WriteString(rest + "\n")
		os.Stderr.WriteString("no end")
	case "random":
		return strconv.FormatUint(random(), 16)
	case "now":
		return strconv.FormatInt(time.Now().UnixNano(), 10)
	case "world":
		_, statErr := os.Stat("/")
		_, openErr := os.Open("/etc/passwd")
		n, readErr := os.Stdin.Read(make([]byte, 1))
		return "args " + strconv.Itoa(len(os.Args)) + " env " + strconv.Itoa(len(os.Environ())) +
			" stat " + strconv.FormatBool(statErr == nil) + " open " + strconv.FormatBool(openErr == nil) +
			" read " + strconv.Itoa(n) + " " + readErr.Error()
	}
	return ""
}

var (
	sink  []byte
	hoard [][]byte
)

func recurse(n int) int {
	if n < 0 {
		return n
	}
	return recurse(n+1) + 1
}

func main() {}
