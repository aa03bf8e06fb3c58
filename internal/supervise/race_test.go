//go:build race

package supervise

// burst is how many orphans a test makes; forking the detector's memory is slow.
const burst = "2000"
