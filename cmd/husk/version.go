package main

import (
	"context"
	"fmt"
	"io"
	goruntime "runtime"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

// versionJSON is what husk version --json prints.
type versionJSON struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func versionCommand(in *invocation) *command {
	var asJSON bool
	return &command{
		name: "version", summary: "print the version", usage: []string{"version [OPTIONS]"},
		examples: []string{"husk version --json"},
		flags:    func() []section { return []section{{"Options", []*option{toggle("json", "as JSON", &asJSON)}}} },
		run: func(_ context.Context, w words) (int, error) {
			if err := noMore("version", w, 0); err != nil {
				return 0, err
			}
			return 0, writeVersion(in.stdout, asJSON)
		},
	}
}

func writeVersion(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, versionJSON{version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH})
	}
	_, err := fmt.Fprintf(w, "husk %s (%s, %s/%s)\n", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
	return err
}
