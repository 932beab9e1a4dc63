package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// maxEnvFile is the longest env file that is read, in bytes; execve(2) would not take more anyway.
const maxEnvFile = 4 << 20

// environment is what --env-file and --env ask for together; where both name a variable, --env wins.
func (p *problems) environment(files, texts []string, lookup func(string) (string, bool)) []string {
	var env []string
	for _, file := range files {
		entries, err := readEnvFile(file, lookup)
		p.add("--env-file", err)
		env = append(env, entries...)
	}
	for _, text := range texts {
		entry, err := envEntry(text, lookup)
		p.add("--env", err)
		if err == nil {
			env = append(env, entry)
		}
	}
	return env
}

// envEntry is NAME=value as it is, or NAME alone with the value that it has here. Errors do not repeat
// the value, which may be a secret.
func envEntry(text string, lookup func(string) (string, bool)) (string, error) {
	name, _, whole := strings.Cut(text, "=")
	switch {
	case name == "":
		return "", errors.New("empty name: want NAME=value, or NAME to pass the present value on")
	case strings.ContainsRune(text, 0):
		return "", fmt.Errorf("%q: contains a NUL byte", name)
	case strings.IndexFunc(name, unicode.IsSpace) >= 0:
		return "", fmt.Errorf("%q: a space in the name: want NAME=value", name)
	case whole:
		return text, nil
	}
	value, ok := lookup(name)
	if !ok {
		return "", fmt.Errorf("%q: not set here: write %s=value, or set it (sudo drops most variables: sudo -E keeps them)", name, name)
	}
	return name + "=" + value, nil
}

func readEnvFile(file string, lookup func(string) (string, bool)) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxEnvFile {
		return nil, fmt.Errorf("%s: longer than %d MiB", file, maxEnvFile>>20)
	}
	return parseEnvFile(file, string(data), lookup)
}

// parseEnvFile reads docker's format: one NAME=value a line, the value as it stands, quotes and
// trailing spaces included; NAME alone takes the caller's value; lines that are empty or begin with #
// are skipped, and so are spaces before the name. Lines may end in CR LF, as editors of other systems
// write them, and the file may begin with a byte order mark. Errors name file:line.
func parseEnvFile(file, data string, lookup func(string) (string, bool)) ([]string, error) {
	var env []string
	var wrong []error
	data = strings.TrimPrefix(data, "\ufeff")
	number := 0
	for line := range strings.SplitSeq(data, "\n") {
		number++
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		entry, err := envEntry(line, lookup)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", file, number, err))
			continue
		}
		env = append(env, entry)
	}
	return env, errors.Join(wrong...)
}
