package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxProfile is the longest seccomp profile that is read, in bytes. The largest one known is 20 KiB.
const maxProfile = 4 << 20

// seccomp reads a profile's name, or a file with an OCI profile in JSON, whose text it returns.
func (p *problems) seccomp(flag, text string) string {
	switch text {
	case "", "default", "strict", "unconfined":
		return text
	}
	profile, err := readProfile(text)
	p.add(flag, err)
	return profile
}

func readProfile(file string) (string, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%q: no such profile or file: want default, strict, unconfined or a JSON file", file)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
	if len(data) > maxProfile || !strings.HasPrefix(text, "{") {
		return "", fmt.Errorf("%s: not a seccomp profile: want a JSON object of at most %d MiB", file, maxProfile>>20)
	}
	return text, nil
}
