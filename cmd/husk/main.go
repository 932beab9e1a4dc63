// Command husk runs untrusted programs in sandboxes from the command line:
//
//	sudo husk run -- python3 -c 'print(6*7)'
//
// It turns flags into a runtime.Spec and a runtime.Command, calls package runtime, and turns the
// Result into text or JSON and an exit code. No decision about isolation is made here.
//
// Exit codes of run and exec: the program's own; 128+n when signal n ended it (137: killed, out of
// memory included); 124 when a limit that was set on time or output ended it; 126 not executable; 127
// not found; 130 when the caller's third interrupt ended it. Whatever fails on our side, a wrong flag
// included, is 125 and exactly one line on standard error: "husk: what: where: how to fix".
//
// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the program. The third SIGINT
// or SIGTERM within two seconds kills it, whatever it does with signals. Other commands stop waiting at
// the first of them.
package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/husk-sandbox/husk/runtime"
)

func main() {
	runtime.Init()
	cli.HelpFlag = nil // ours is another; looking for this one takes a third of the time that husk version takes from here
	os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
