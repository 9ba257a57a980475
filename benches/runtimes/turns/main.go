// Two goroutines on one thread hand a number to and fro through channels: prints turns a second.
package main

import (
	"fmt"
	"runtime"
	"time"
)

func main() {
	const rounds = 100_000
	runtime.GOMAXPROCS(1)
	there, back := make(chan int), make(chan int)
	go func() {
		for n := range there {
			back <- n + 1
		}
	}()
	n, began := 0, time.Now()
	for i := 0; i < rounds; i++ {
		there <- n
		n = <-back
	}
	fmt.Printf("%.0f\n", float64(n)/time.Since(began).Seconds())
}
