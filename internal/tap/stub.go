package tap

func bashShell(func(string) string) string { return "/bin/bash" }
