package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/husk-sandbox/husk/runtime"
)

// TestDocs: docs/cli.md names every command, every option in the form that the help has, and every field
// of a result.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.ReplaceAll(string(data), `\|`, "|")
	options := (&invocation{}).global().options
	for _, c := range visible((&invocation{}).commands()) {
		options = append(options, c.options()...)
		if !strings.Contains(docs, "husk "+c.name) {
			t.Errorf("no husk %s", c.name)
		}
	}
	for _, o := range options {
		form := "`--" + o.name
		if o.short != "" {
			form = "`-" + o.short + "`, " + form
		}
		if !strings.Contains(docs, form) {
			t.Errorf("no %s", form)
		}
	}
	bytes := []byte{0xff}
	text, err := json.Marshal(runtime.Result{Stdout: bytes, Stderr: bytes})
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil || len(fields) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	for name := range fields {
		if !strings.Contains(docs, "`"+name+"`") {
			t.Errorf("no field %s", name)
		}
	}
}
