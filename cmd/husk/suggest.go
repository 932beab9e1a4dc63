package main

import (
	"strings"

	"github.com/xrash/smetrics"
)

// far is how many letters a suggestion may differ in from what was typed, and one more. The library's
// own suggestions have no such bound: there, whatever is least unlike is suggested.
const far = 3

// didYouMean is the most alike of the known names, or empty when none is alike.
func didYouMean(name string, known []string) string {
	best, hint := min(far, len(strings.TrimLeft(name, "-"))), ""
	for _, k := range known {
		if d := smetrics.WagnerFischer(name, k, 1, 1, 1); d < best {
			best, hint = d, k
		}
	}
	if hint == "" {
		return ""
	}
	return " (did you mean " + hint + "?)"
}
