package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/husk-sandbox/husk/runtime"
)

// rlimits reads NAME=SOFT[:HARD]; HARD is SOFT unless given. Which names there are, the runtime says.
func (p *problems) rlimits(flag string, texts []string) []runtime.Rlimit {
	var rlimits []runtime.Rlimit
	for _, text := range texts {
		r, err := parseRlimit(text)
		if err != nil {
			p.add(flag, fmt.Errorf("%q: %w", text, err))
			continue
		}
		rlimits = append(rlimits, r)
	}
	return rlimits
}

func parseRlimit(text string) (runtime.Rlimit, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return runtime.Rlimit{}, fmt.Errorf("want NAME=SOFT[:HARD], such as nofile=4096 or stack=64m:unlimited")
	}
	softText, hardText, two := strings.Cut(value, ":")
	if !two {
		hardText = softText
	}
	soft, err := parseRlimitValue(name, softText)
	if err != nil {
		return runtime.Rlimit{}, err
	}
	hard, err := parseRlimitValue(name, hardText)
	return runtime.Rlimit{Name: name, Soft: soft, Hard: hard}, err
}

// parseRlimitValue reads a plain number, unlimited, or, for the resources measured in bytes, a size.
func parseRlimitValue(name, text string) (int64, error) {
	if text == "unlimited" {
		return runtime.Unlimited, nil
	}
	if strings.Trim(text, "0123456789") == "" && text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: too large (use unlimited for no limit)", text)
		}
		return n, nil
	}
	switch name {
	case "as", "core", "data", "fsize", "memlock", "msgqueue", "rss", "stack":
		b, err := runtime.ParseBytes(text)
		return int64(b), err
	}
	return 0, fmt.Errorf("%q: want a whole number, or unlimited", text)
}
