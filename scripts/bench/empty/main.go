// Empty does nothing: its start is what any Go program costs.
package main

func main() {}
