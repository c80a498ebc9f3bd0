// HTTP/3 over quic-go: `quicgo HOST:PORT CHECK`, where CHECK is download, ranges, resumption or migration.
// Prints a line for each response: status, bytes, SHA-256; then what the check adds.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var host string

// What a connection is begun with; the cache lets a second one resume the first.
var session = &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(8)}

func main() {
	checks := map[string]func() error{
		"download": download, "ranges": ranges, "resumption": resumption, "migration": migration,
	}
	host = os.Args[1]
	if err := checks[os.Args[2]](); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func download() error { return one("/large", "") }

func ranges() error { return one("/large", "bytes=1000-1999") }

func one(path, wanted string) error {
	transport := &http3.Transport{TLSClientConfig: session}
	defer transport.Close()
	response, err := get(transport, path, wanted)
	if err != nil {
		return err
	}
	return receive(response, nil)
}

func resumption() error {
	resumed := false
	for range 2 {
		transport := &http3.Transport{TLSClientConfig: session}
		response, err := get(transport, "/small", "")
		if err != nil {
			return err
		}
		if err := receive(response, nil); err != nil {
			return err
		}
		resumed = response.TLS != nil && response.TLS.DidResume
		// Tickets come after the handshake.
		time.Sleep(200 * time.Millisecond)
		transport.Close()
	}
	fmt.Println("resumed", resumed)
	return nil
}

// In the midst of a response the connection moves to another socket.
func migration() error {
	var connection *quic.Conn
	// Both sockets identify connections in the same way: DialAddr would have connection IDs of no length.
	dial := func(ctx context.Context, address string, config *tls.Config, options *quic.Config) (*quic.Conn, error) {
		remote, err := net.ResolveUDPAddr("udp", address)
		if err != nil {
			return nil, err
		}
		socket, err := net.ListenUDP("udp", nil)
		if err != nil {
			return nil, err
		}
		connection, err = (&quic.Transport{Conn: socket}).DialEarly(ctx, remote, config, options)
		return connection, err
	}
	transport := &http3.Transport{TLSClientConfig: session, Dial: dial}
	defer transport.Close()
	response, err := get(transport, "/large", "")
	if err != nil {
		return err
	}
	return receive(response, func() error {
		socket, err := net.ListenUDP("udp", nil)
		if err != nil {
			return err
		}
		path, err := connection.AddPath(&quic.Transport{Conn: socket})
		if err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := path.Probe(patience); err != nil {
			return err
		}
		fmt.Println("moved")
		return path.Switch()
	})
}

func get(transport *http3.Transport, path, wanted string) (*http.Response, error) {
	request, err := http.NewRequest("GET", "https://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	if wanted != "" {
		request.Header.Set("Range", wanted)
	}
	return transport.RoundTrip(request)
}

// Reads a response to its end; after its first 100 kB it does `midway`.
func receive(response *http.Response, midway func() error) error {
	hash := sha256.New()
	count, err := io.CopyN(hash, response.Body, 100_000)
	if err == nil && midway != nil {
		err = midway()
	}
	if err == io.EOF {
		err = nil
	}
	if err != nil {
		return err
	}
	more, err := io.Copy(hash, response.Body)
	fmt.Printf("%d %d %x\n", response.StatusCode, count+more, hash.Sum(nil))
	return err
}
