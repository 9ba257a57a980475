module pairs

go 1.25.0

require (
	github.com/panjf2000/ants/v2 v2.12.1
	go.etcd.io/bbolt v1.5.0
)

require (
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
)
