package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/husk-sandbox/husk/runtime"
)

// binds reads SRC:DST[:OPTION[,OPTION]…].
func (p *problems) binds(flag string, texts []string) []runtime.Bind {
	var binds []runtime.Bind
	for _, text := range texts {
		b, err := parseBind(text)
		if err != nil {
			p.add(flag, fmt.Errorf("%q: %w", text, err))
			continue
		}
		binds = append(binds, b)
	}
	return binds
}

// parseBind reads one bind. It is read-only unless rw is said, since a mistyped bind should not cost
// anybody's files. \: is a colon that belongs to a path, \\ a backslash. A relative source is taken
// from the present directory.
func parseBind(text string) (runtime.Bind, error) {
	fields := splitEscaped(text)
	if len(fields) < 2 || len(fields) > 3 || fields[0] == "" || fields[1] == "" {
		return runtime.Bind{}, errors.New(`want SRC:DST or SRC:DST:rw (a colon in a path is written \:)`)
	}
	source, err := filepath.Abs(fields[0])
	if err != nil {
		return runtime.Bind{}, fmt.Errorf("find present directory: %w", err)
	}
	b := runtime.Bind{Source: source, Destination: fields[1], ReadOnly: true}
	if len(fields) == 2 {
		return b, nil
	}
	return b, bindOptions(&b, fields[2])
}

func bindOptions(b *runtime.Bind, text string) error {
	access := ""
	for option := range strings.SplitSeq(text, ",") {
		switch option {
		case "ro", "rw":
			if access != "" && access != option {
				return errors.New("both ro and rw")
			}
			access = option
		case "host-root":
			b.AsHostRoot = true
		default:
			return fmt.Errorf(`option %q: want ro, rw or rw,host-root (a colon in a path is written \:)`, option)
		}
	}
	b.ReadOnly = access != "rw"
	if b.AsHostRoot && b.ReadOnly {
		return errors.New("host-root is about writing: it goes with rw")
	}
	return nil
}

// splitEscaped splits at colons that have no backslash before them.
func splitEscaped(text string) []string {
	var fields []string
	var field strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == ':' || text[i+1] == '\\'):
			i++
			field.WriteByte(text[i])
		case c == ':':
			fields = append(fields, field.String())
			field.Reset()
		default:
			field.WriteByte(c)
		}
	}
	return append(fields, field.String())
}

// tmpfs reads DST[:OPTION[,OPTION]…].
func (p *problems) tmpfs(flag string, texts []string) []runtime.Tmpfs {
	var list []runtime.Tmpfs
	for _, text := range texts {
		t, err := parseTmpfs(text)
		if err != nil {
			p.add(flag, fmt.Errorf("%q: %w", text, err))
			continue
		}
		list = append(list, t)
	}
	return list
}

func parseTmpfs(text string) (runtime.Tmpfs, error) {
	fields := splitEscaped(text)
	if len(fields) > 2 || fields[0] == "" {
		return runtime.Tmpfs{}, errors.New("want DST or DST:size=64m,mode=1777,inodes=1000,exec")
	}
	t := runtime.Tmpfs{Destination: fields[0]}
	if len(fields) == 1 {
		return t, nil
	}
	for option := range strings.SplitSeq(fields[1], ",") {
		if err := tmpfsOption(&t, option); err != nil {
			return t, err
		}
	}
	return t, nil
}

func tmpfsOption(t *runtime.Tmpfs, option string) error {
	name, value, _ := strings.Cut(option, "=")
	switch name {
	case "size":
		b, err := runtime.ParseBytes(value)
		if err == nil && b <= 0 {
			err = fmt.Errorf("size %q: a tmpfs always has a size", value)
		}
		t.Size = b
		return err
	case "mode":
		mode, err := strconv.ParseUint(value, 8, 32)
		if err != nil || mode == 0 || mode > 0o7777 {
			return fmt.Errorf("mode %q: want octal digits such as 1777 or 700", value)
		}
		t.Mode = uint32(mode)
		return nil
	case "inodes":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n <= 0 {
			return fmt.Errorf("inodes %q: want a number above 0", value)
		}
		t.Inodes = n
		return nil
	case "exec":
		t.Exec = true
		if option == "exec" {
			return nil
		}
	}
	return fmt.Errorf("option %q: want size=64m, mode=1777, inodes=1000 or exec", option)
}
