// Held-up programs and their mended twins around Go modules: `pairs NAME VARIANT`, a fixed amount of work.
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/panjf2000/ants/v2"
	bolt "go.etcd.io/bbolt"
)

func hash(rounds int) byte {
	var b [64]byte
	for i := 0; i < rounds; i++ {
		s := sha256.Sum256(b[:])
		copy(b[:], s[:])
	}
	return b[0]
}

func each(count int, work func(i int)) {
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		all.Add(1)
		go func() { defer all.Done(); work(i) }()
	}
	all.Wait()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A driver whose queries take 2 ms elsewhere.
type slow struct{}
type conn struct{}
type stmt struct{}
type rows struct{ n int }

func (slow) Open(string) (driver.Conn, error)           { return &conn{}, nil }
func (*conn) Prepare(string) (driver.Stmt, error)       { return stmt{}, nil }
func (*conn) Close() error                              { return nil }
func (*conn) Begin() (driver.Tx, error)                 { return nil, errors.New("no transactions") }
func (stmt) Close() error                               { return nil }
func (stmt) NumInput() int                              { return 0 }
func (stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errors.New("no statements") }
func (stmt) Query([]driver.Value) (driver.Rows, error) {
	time.Sleep(2 * time.Millisecond)
	return &rows{}, nil
}
func (r *rows) Columns() []string { return []string{"a"} }
func (r *rows) Close() error      { return nil }
func (r *rows) Next(d []driver.Value) error {
	if r.n > 20 {
		return io.EOF
	}
	r.n++
	d[0] = int64(hash(20))
	return nil
}

// Four goroutines share so many connections of database/sql.
func sqlpool(how string) {
	sql.Register("slow", slow{})
	db, err := sql.Open("slow", "")
	must(err)
	count, err := strconv.Atoi(how)
	must(err)
	db.SetMaxOpenConns(count)
	db.SetMaxIdleConns(count)
	each(4, func(int) {
		for i := 0; i < 300; i++ {
			r, err := db.QueryContext(context.Background(), "q")
			must(err)
			for r.Next() {
			}
			r.Close()
			hash(1500)
		}
	})
}

// Four goroutines wait for the tasks that they give to a pool of so many workers.
func pool(how string) {
	count, err := strconv.Atoi(how)
	must(err)
	workers, err := ants.NewPool(count)
	must(err)
	each(4, func(int) {
		for i := 0; i < 240; i++ {
			done := make(chan bool)
			workers.Submit(func() { hash(20000); done <- true })
			<-done
		}
	})
}

// One writer at a time, which waits for the disk, or does not.
func bbolt(how string) {
	os.Remove("b.db")
	db, err := bolt.Open("b.db", 0600, nil)
	must(err)
	db.NoSync = how == "nosync"
	bucket := []byte("b")
	must(db.Update(func(t *bolt.Tx) error { _, err := t.CreateBucket(bucket); return err }))
	each(2, func(k int) {
		for i := 0; i < 3500; i++ {
			key := binary.BigEndian.AppendUint64(nil, uint64(k*100000+i))
			must(db.Update(func(t *bolt.Tx) error { return t.Bucket(bucket).Put(key, make([]byte, 500)) }))
			hash(2000)
		}
	})
	db.Close()
}

func main() {
	programs := map[string]func(string){"sqlpool": sqlpool, "ants": pool, "bbolt": bbolt}
	programs[os.Args[1]](os.Args[2])
}
