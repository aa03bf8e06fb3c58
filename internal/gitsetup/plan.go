package gitsetup

// New makes the plan.
func New(in Input) Plan { return Plan{} }
