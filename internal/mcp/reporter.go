package mcp

import (
	"fmt"

	"agent-init/internal/jsondoc"
	"agent-init/internal/problem"
)

// maxFindings bounds the errors, and the warnings, about one file: nobody reads
// more, and a hostile file could otherwise hold thousands.
const maxFindings = 100

// reporter collects the findings about one file.
type reporter struct {
	doc *jsondoc.Document
	// lenient makes faults warnings: what they are about is left out anyway.
	lenient bool
	found   problem.List
	// errors and warnings count what was reported, beyond the bound too.
	errors, warnings int
}

func (r *reporter) fault(offset int, why, hint string) {
	if r.lenient {
		r.warn(offset, why, hint)
		return
	}
	if r.errors++; r.errors <= maxFindings {
		r.found.Add(r.doc.Error(offset, why, hint))
	}
}

func (r *reporter) warn(offset int, why, hint string) {
	if r.warnings++; r.warnings <= maxFindings {
		r.found.Add(r.doc.Warning(offset, why, hint))
	}
}

// close says how much went unsaid.
func (r *reporter) close() {
	rest := func(p problem.Problem, n int, noun string) {
		if n > maxFindings {
			p.Line, p.Column = 0, 0
			p.Why = fmt.Sprintf("%d more %s of this file are not shown", n-maxFindings, noun)
			r.found.Add(p)
		}
	}
	rest(r.doc.Error(0, "", ""), r.errors, "errors")
	rest(r.doc.Warning(0, "", ""), r.warnings, "warnings")
}
