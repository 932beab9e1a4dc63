package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// completeName is the hidden command that the shells' scripts ask. It is one of its own, not a flag at
// the end of any command line, which a program's own arguments could imitate.
const completeName = "__complete"

const bashScript = `_husk() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		COMPREPLY+=("$line")
	done < <(command husk __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace
}
complete -o bashdefault -o default -F _husk husk
`

const zshScript = `#compdef husk
_husk() {
	local -a candidates
	candidates=("${(@f)$(command husk __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "${candidates[1]}" ]]; then
		compadd -- "${candidates[@]}"
	else
		_files
	fi
}
compdef _husk husk
`

const fishScript = `function __husk_complete
	set -l words (commandline -opc) (commandline -ct)
	command husk __complete -- $words[2..-1] 2>/dev/null
end
complete -c husk -a '(__husk_complete)'
`

func completionCommand(in *invocation) *command {
	return &command{
		name: "completion", summary: "print a completion script for a shell", usage: []string{"completion bash|zsh|fish"},
		examples: []string{
			"husk completion bash | sudo tee /etc/bash_completion.d/husk",
			"source <(husk completion zsh)",
			"husk completion fish | source",
		},
		run: func(_ context.Context, w words) (int, error) {
			if err := noMore("completion", w, 1); err != nil {
				return 0, err
			}
			shell := strings.Join(w.list, "")
			script, ok := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
			if !ok {
				return 0, fmt.Errorf("completion: %q is not a shell known here: write bash, zsh or fish", shell)
			}
			_, err := io.WriteString(in.stdout, script)
			return 0, err
		},
	}
}

// completeCommand prints what may stand for the last of its words, one a line.
func completeCommand(in *invocation) *command {
	return &command{
		name: completeName, hidden: true, usage: []string{completeName + " -- WORD…"},
		run: func(ctx context.Context, w words) (int, error) {
			c := completion{commands: visible(in.commands()), global: in.global().options, sandboxes: func() []string {
				return in.sandboxNames(ctx)
			}}
			for _, candidate := range c.candidates(w.list) {
				fmt.Fprintln(in.stdout, candidate)
			}
			return 0, nil
		},
	}
}

// sandboxNames are the names, or else ids, of all sandboxes; none where they cannot be read.
func (in *invocation) sandboxNames(ctx context.Context) []string {
	rt, err := in.open()
	if err != nil {
		return nil
	}
	defer rt.Close()
	infos, err := rt.List(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, info := range infos {
		if info.Name != "" {
			names = append(names, info.Name)
		} else {
			names = append(names, info.ID)
		}
	}
	return names
}
