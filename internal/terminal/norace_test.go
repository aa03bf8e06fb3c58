//go:build !race

package terminal_test

var raceFlags []string
