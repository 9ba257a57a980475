// Puts keys into an etcd from many clients at once: prints puts a second.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	clients, err := strconv.Atoi(os.Args[2])
	check(err)
	puts, err := strconv.Atoi(os.Args[3])
	check(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}, DialTimeout: 5 * time.Second})
	check(err)
	_, err = client.Put(context.Background(), "first", "one")
	check(err)
	var done sync.WaitGroup
	began := time.Now()
	for i := 0; i < clients; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			for n := 0; n < puts; n++ {
				_, err := client.Put(context.Background(), fmt.Sprintf("key-%d-%d", i, n), "a value of some bytes")
				check(err)
			}
		}()
	}
	done.Wait()
	fmt.Printf("%.0f\n", float64(clients*puts)/time.Since(began).Seconds())
}
