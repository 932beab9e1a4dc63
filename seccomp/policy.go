package seccomp

import "slices"

// document is a profile before it meets a machine: names in place of numbers, and rules that hold
// only on some architectures, kernels or with some capabilities.
type document struct {
	fallback action
	rules    []docRule
}

// docRule is one rule of a document.
type docRule struct {
	names    []string
	act      action
	conds    []cond // all must hold; none: the rule holds always
	includes gate   // the rule counts when this holds
	excludes gate   // and none of these does

	otherwise bool // act is what the call gets when no other rule of it matches
	newer     bool // the names do not tell how new the document is
}

// machine is what a document is resolved for.
type machine struct {
	table
	caps   []string
	kernel kernelVersion
}

// policy is a profile resolved for a machine: a decision for every number.
type policy struct {
	calls  []decision // by number
	beyond action     // numbers past the end
}

// decision is what happens to one call: the first rule whose conditions hold, else final.
type decision struct {
	rules []rule
	final action
}

type rule struct {
	conds []cond
	act   action
}

// resolve gives every number its decision.
//
// When several rules match a call, the strictest action wins, as among stacked filters of the
// kernel, and the earlier one among errnos; so a refusal added to a profile holds whatever the
// profile allows elsewhere. A document whose fallback refuses answers ENOSYS to numbers without a
// name and to those newer than the newest it names: programs then take the older call, as they
// would on an older kernel.
func (d document) resolve(m machine) policy {
	unknown := d.fallback
	if !unknown.permits() {
		unknown = nosys
	}
	p := policy{calls: make([]decision, len(m.names)), beyond: unknown}
	newest := d.newest(m)
	for nr, name := range m.names {
		p.calls[nr].final = d.fallback
		if name == "" || nr > newest {
			p.calls[nr].final = unknown
		}
	}
	for _, r := range d.rules {
		if r.appliesTo(m) {
			p.collect(m.table, r)
		}
	}
	for nr, c := range p.calls {
		p.calls[nr] = decide(c.rules, c.final)
	}
	return p
}

// newest returns the highest number that the document names, whether or not the rule counts here.
// A document without names counts as newer than the table.
func (d document) newest(m machine) int {
	newest := -1
	for _, r := range d.rules {
		for _, name := range r.names {
			if nr, ok := m.number(name); ok && !r.newer {
				newest = max(newest, nr)
			}
		}
	}
	if newest < 0 {
		return len(m.names)
	}
	return newest
}

// collect appends a rule to the calls that it names.
func (p *policy) collect(t table, r docRule) {
	for _, name := range r.names {
		nr, ok := t.number(name)
		switch {
		case !ok:
		case r.otherwise:
			p.calls[nr].final = r.act
		default:
			p.calls[nr].rules = append(p.calls[nr].rules, rule{r.conds, r.act})
		}
	}
}

// decide orders rules by severity and drops those that cannot matter.
func decide(rules []rule, final action) decision {
	slices.SortStableFunc(rules, func(a, b rule) int {
		return int(int64(a.act.severity()) - int64(b.act.severity()))
	})
	if i := slices.IndexFunc(rules, func(r rule) bool { return len(r.conds) == 0 }); i >= 0 {
		rules, final = rules[:i], rules[i].act
	}
	for len(rules) > 0 && rules[len(rules)-1].act == final {
		rules = rules[:len(rules)-1]
	}
	return decision{rules, final}
}

// same tells whether two decisions are equal.
func (d decision) same(other decision) bool {
	return d.final == other.final && slices.EqualFunc(d.rules, other.rules, func(a, b rule) bool {
		return a.act == b.act && slices.Equal(a.conds, b.conds)
	})
}
