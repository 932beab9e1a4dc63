package main

import "strings"

// completion knows what may come next on a command line.
type completion struct {
	commands  []*command
	global    []*option
	sandboxes func() []string
}

// candidates are what may stand for the last word, given those before it. None means: let the shell
// complete file names.
func (c *completion) candidates(typed []string) []string {
	if len(typed) == 0 {
		return nil
	}
	typed = joinAssignments(typed)
	if name, value, ok := strings.Cut(typed[len(typed)-1], "="); ok && strings.HasPrefix(name, "--") {
		return withPrefix(name+"=", c.candidates(append(typed[:len(typed)-1:len(typed)-1], name, value)))
	}
	prefix := typed[len(typed)-1]
	rest, options, value := skipOptions(typed, c.global)
	switch {
	case value != nil:
		return startingWith(value.values, prefix)
	case len(rest) == 0:
		return startingWith(optionNames(options), prefix)
	case len(rest) == 1:
		return startingWith(c.commandNames(), prefix)
	}
	if command := find(c.commands, rest[0]); command != nil {
		return c.within(command, rest[1:])
	}
	return nil
}

// within completes the words of one command.
func (c *completion) within(command *command, typed []string) []string {
	prefix := typed[len(typed)-1]
	rest, options, value := skipOptions(typed, command.options())
	switch {
	case value != nil:
		return startingWith(value.values, prefix)
	case len(rest) == 0:
		return startingWith(optionNames(options), prefix)
	case command.name == "completion":
		return startingWith([]string{"bash", "zsh", "fish"}, prefix)
	case command.sandboxes && (command.words < 0 || len(rest) <= command.words):
		return startingWith(c.sandboxes(), prefix)
	}
	return nil
}

// skipOptions returns the words from the first that is not an option on. It returns none of them when
// the last word is an option being typed, and the option when it is an option's value.
func skipOptions(typed []string, options []*option) (rest []string, known []*option, value *option) {
	for i := 0; i < len(typed); i++ {
		word := typed[i]
		last := i == len(typed)-1
		switch {
		case word == "--" && !last:
			return typed[i+1:], nil, nil
		case !strings.HasPrefix(word, "-"):
			return typed[i:], nil, nil
		case last:
			return nil, options, nil
		}
		if o := optionOf(options, word); o != nil && o.arg != "" {
			i++
			if i == len(typed)-1 {
				return nil, nil, o
			}
		}
	}
	return nil, options, nil
}

// optionOf is the option of a word such as --env or -it, whose last letter may take a value.
func optionOf(options []*option, word string) *option {
	for _, o := range options {
		if word == "--"+o.name || o.short != "" && !strings.HasPrefix(word, "--") && strings.HasSuffix(word, o.short) {
			return o
		}
	}
	return nil
}

// joinAssignments undoes how bash splits --net=host, at "=": as far as completion goes, it is the same
// as --net host.
func joinAssignments(typed []string) []string {
	var list []string
	for i, word := range typed {
		if word == "=" && i > 0 && strings.HasPrefix(typed[i-1], "--") {
			if i == len(typed)-1 {
				list = append(list, "")
			}
			continue
		}
		list = append(list, word)
	}
	return list
}

func (c *completion) commandNames() []string {
	names := []string{"help"}
	for _, command := range c.commands {
		names = append(names, command.name)
	}
	return names
}

func optionNames(options []*option) []string {
	var names []string
	for _, o := range options {
		names = append(names, "--"+o.name)
	}
	return names
}

func withPrefix(prefix string, list []string) []string {
	for i := range list {
		list[i] = prefix + list[i]
	}
	return list
}

func startingWith(list []string, prefix string) []string {
	var matching []string
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			matching = append(matching, s)
		}
	}
	return matching
}
