// Command standin runs the Messages API stand-in of internal/standin:
//
//	standin [-listen HOST:PORT|unix:PATH] [-script FILE] [-record FILE]
//
// It prints its URL on stdout once it listens and ends on TERM or INT. FILE of
// -script holds a standin.Script; -record appends each request as a line of JSON.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"agent-init/internal/standin"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "`ADDRESS` to listen on: HOST:PORT (port 0: any free one) or unix:PATH")
	script := flag.String("script", "", "JSON `FILE` with the answers; without it each prompt is repeated")
	record := flag.String("record", "", "`FILE` that each request is appended to as a line of JSON")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "standin: unexpected argument %q\n", flag.Arg(0))
		os.Exit(64)
	}
	if err := run(*listen, *script, *record); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run(listen, scriptPath, recordPath string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	var script standin.Script
	if scriptPath != "" {
		data, err := os.ReadFile(scriptPath)
		if err != nil {
			return err
		}
		if script, err = standin.ParseScript(data); err != nil {
			return err
		}
	}
	var record io.Writer
	if recordPath != "" {
		f, err := os.OpenFile(recordPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		record = f
	}
	server, err := standin.Start(script, listen, record)
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	<-stop
	return server.Close()
}
