// Takes mutexes that are free, one goroutine and one mutex a CPU: prints acquisitions a second.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

type padded struct {
	sync.Mutex
	counter uint64
	_       [112]byte
}

func main() {
	const rounds = 100_000_000
	cpus := runtime.NumCPU()
	locks := make([]padded, cpus)
	var done sync.WaitGroup
	began := time.Now()
	for i := range locks {
		done.Add(1)
		go func(of *padded) {
			defer done.Done()
			for n := 0; n < rounds; n++ {
				of.Lock()
				of.counter++
				of.Unlock()
			}
		}(&locks[i])
	}
	done.Wait()
	fmt.Printf("%.0f\n", float64(cpus*rounds)/time.Since(began).Seconds())
}
