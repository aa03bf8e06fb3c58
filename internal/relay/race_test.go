//go:build race

package relay

// million is fewer where the race detector makes everything slow.
const million = 50_000
