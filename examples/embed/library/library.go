// Package library stands for what a program imports: it has an init function that prints.
package library

import "fmt"

func init() { fmt.Println("library: init") }
