//go:build !race

package supervise

// burst is how many orphans a test makes.
const burst = "10000"
