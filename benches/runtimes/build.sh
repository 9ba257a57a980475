#!/bin/bash
# build.sh FOLDER: builds the programs of run.sh there. Needs Go, and for hsqldb Java and Maven.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
export GOBIN=$PWD GOFLAGS=-buildvcs=false
go install github.com/nats-io/nats-server/v2@v2.10.22
go install github.com/nats-io/natscli/nats@v0.1.5
go install github.com/cockroachdb/pebble/cmd/pebble@v1.1.2
go build -o free "$here/free/main.go"
go build -o turns "$here/turns/main.go"
mkdir -p src/etcd src/puts
cat > src/etcd/main.go <<'G'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
G
cp "$here/puts/main.go" src/puts
for of in etcd:server puts:client; do
    (cd "src/${of%:*}" && { [ -s go.mod ] || go mod init "${of%:*}"; } && go get "go.etcd.io/etcd/${of#*:}/v3@v3.5.17" &&
        go build -o "../../${of%:*}" .)
done
if command -v mvn > /dev/null; then
    mvn -q org.apache.maven.plugins:maven-dependency-plugin:copy -Dartifact=org.hsqldb:hsqldb:2.7.2 -DoutputDirectory=.
    javac -d . "$here/Load.java"
fi
