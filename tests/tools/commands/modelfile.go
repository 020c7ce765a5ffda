// Renders an Ollama TEMPLATE, given as the first argument, with the messages on standard input, as Ollama does: Go's
// text/template with the messages and the system prompts among them.
package main

import (
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type message struct{ Role, Content string }

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	parsed, err := template.New("").Parse(os.Args[1])
	check(err)
	var messages []message
	check(json.NewDecoder(os.Stdin).Decode(&messages))
	var system []string
	for _, one := range messages {
		if one.Role == "system" {
			system = append(system, one.Content)
		}
	}
	values := map[string]any{"Messages": messages, "System": strings.Join(system, "\n\n")}
	check(parsed.Execute(os.Stdout, values))
}
