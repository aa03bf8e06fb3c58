//go:build !race

package relay

// million is how many events must hold.
const million = 1_000_000
