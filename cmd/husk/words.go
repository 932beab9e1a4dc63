package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// words are a command line's words after its flags. Flags end at the first word that is not one.
type words struct {
	list   []string
	dashed bool // a "--" ended the flags; it is not in the list
}

// runWords reads
//
//	husk run [flags] -- COMMAND [ARG…]
//	husk run [flags] SNAPSHOT -- COMMAND [ARG…]
//	husk run [flags] SNAPSHOT COMMAND [ARG…]
//
// and nothing else: without "--" the first word is always the snapshot.
func runWords(w words) (snapshot string, command []string, err error) {
	if w.dashed {
		return "", w.list, needCommand("run", w.list)
	}
	if len(w.list) == 0 {
		return "", nil, needCommand("run", nil)
	}
	snapshot, command = w.list[0], w.list[1:]
	if len(command) == 0 {
		return "", nil, fmt.Errorf("run: no command: write husk run -- %s to run it in base host, or husk run %[1]s -- COMMAND",
			quote(snapshot))
	}
	if strings.HasPrefix(command[0], "-") && command[0] != "--" {
		return "", nil, fmt.Errorf("run: %s: flags go before the snapshot; if %s is the command, write husk run -- %s",
			quote(command[0]), quote(snapshot), quoteAll(w.list))
	}
	command, err = afterDashes("run", "", command)
	return snapshot, command, err
}

// execWords reads
//
//	husk exec [flags] SANDBOX -- COMMAND [ARG…]
//	husk exec [flags] SANDBOX COMMAND [ARG…]
func execWords(w words) (sandbox string, command []string, err error) {
	if w.dashed || len(w.list) == 0 {
		return "", nil, errors.New("exec: no sandbox: write husk exec SANDBOX -- COMMAND (husk ps lists them)")
	}
	command, err = afterDashes("exec", "sandbox", w.list[1:])
	return w.list[0], command, err
}

// afterDashes drops one leading "--". A command that begins with a dash without it is a misplaced flag.
func afterDashes(verb, subject string, rest []string) ([]string, error) {
	if len(rest) > 0 && rest[0] == "--" {
		return rest[1:], needCommand(verb, rest[1:])
	}
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		return nil, fmt.Errorf("%s: %s: flags go before the %s", verb, quote(rest[0]), subject)
	}
	return rest, needCommand(verb, rest)
}

func needCommand(verb string, command []string) error {
	if len(command) > 0 && command[0] != "" {
		return nil
	}
	subject := map[string]string{"run": "", "exec": "SANDBOX "}[verb]
	if len(command) > 0 {
		return fmt.Errorf("%s: empty command: write husk %[1]s %s-- COMMAND", verb, subject)
	}
	return fmt.Errorf("%s: no command: write husk %[1]s %s-- COMMAND", verb, subject)
}

// noMore refuses words beyond the first n.
func noMore(verb string, w words, n int) error {
	if len(w.list) <= n {
		return nil
	}
	extra := w.list[n]
	if strings.HasPrefix(extra, "-") {
		return fmt.Errorf("%s: %s: flags go before the first word", verb, quote(extra))
	}
	return fmt.Errorf("%s: unexpected word %s: see husk %[1]s --help", verb, quote(extra))
}

// someSandboxes are the words of a command that takes one sandbox or more.
func someSandboxes(verb string, w words) ([]string, error) {
	if len(w.list) == 0 {
		return nil, fmt.Errorf("%s: no sandbox: write husk %[1]s SANDBOX… (husk ps lists them)", verb)
	}
	for _, ref := range w.list {
		if strings.HasPrefix(ref, "-") {
			return nil, fmt.Errorf("%s: %s: flags go before the first sandbox", verb, quote(ref))
		}
	}
	return w.list, nil
}

// quote writes a word the way a shell would read it back.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@=,+%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quoteAll(list []string) string {
	quoted := slices.Clone(list)
	for i, word := range quoted {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}
