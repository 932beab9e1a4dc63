package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Three SIGINT or SIGTERM within this time kill a program that takes no notice of them.
const (
	patience  = 2 * time.Second
	lastStraw = 3
)

// passSignals hands the signals that are meant for the program to the returned channel, until stop. The
// third SIGINT or SIGTERM within two seconds ends the context instead, which kills the program.
func passSignals(ctx context.Context) (context.Context, <-chan os.Signal, func()) {
	ctx, cancel := context.WithCancel(ctx)
	caught := catch(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	passed := make(chan os.Signal, cap(caught))
	pipe := survivePipe()
	done := make(chan struct{})
	go func() {
		var count impatience
		for {
			select {
			case sig := <-caught:
				if count.add(sig, time.Now()) {
					cancel()
				}
				select {
				case passed <- sig:
				default: // nobody has taken the earlier ones yet
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, passed, func() {
		signal.Stop(caught)
		signal.Stop(pipe)
		close(done)
		cancel()
	}
}

// cancelOnSignal ends the context at the first signal that asks to.
func cancelOnSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	caught := catch(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	pipe := survivePipe()
	go func() {
		select {
		case <-caught:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(caught)
		signal.Stop(pipe)
		cancel()
	}
}

// catch notifies of these signals, except those that husk was started to ignore (nohup, a shell's &).
func catch(signals ...os.Signal) chan os.Signal {
	caught := make(chan os.Signal, 64)
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return caught
}

// survivePipe makes writing to a closed standard output an error like any other, so that what was made
// is undone. Ignoring the signal would do as well here, but programs would inherit that.
func survivePipe() chan os.Signal {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	return pipe
}

// impatience counts SIGINT and SIGTERM.
type impatience struct{ recent []time.Time }

// add reports whether this is the third within the time that patience lasts.
func (i *impatience) add(sig os.Signal, now time.Time) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGTERM {
		return false
	}
	i.recent = append(i.recent, now)
	if len(i.recent) > lastStraw {
		i.recent = i.recent[1:]
	}
	return len(i.recent) == lastStraw && now.Sub(i.recent[0]) <= patience
}
