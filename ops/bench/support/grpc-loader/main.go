// Makes calls as fast as they are answered, over gRPC (grpc-go) and over HTTP (net/http), and follows watches. One JSON
// object a line comes in, one goes out. Messages are bytes in files, each behind its length: the loader knows no kind.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

type order struct {
	// load, watch, deliver or unwatch.
	Do    string `json:"do"`
	Token string `json:"token"`
	// Of gRPC: host:port. Of HTTP: its base URL.
	Address string `json:"address"`
	// Of gRPC: the path of the method. Of HTTP: the verb.
	Method      string  `json:"method"`
	HTTP        bool    `json:"http"`
	File        string  `json:"file"`
	Once        bool    `json:"once"`
	Streams     int     `json:"streams"`
	Connections int     `json:"connections"`
	Seconds     float64 `json:"seconds"`
}

type result struct {
	Calls   int     `json:"calls"`
	Errors  int     `json:"errors"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	// The first error.
	Why string `json:"why,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	var open *watches
	for lines.Scan() {
		var asked order
		check(json.Unmarshal(lines.Bytes(), &asked))
		var told result
		switch asked.Do {
		case "load":
			told = load(asked)
		case "watch":
			open = watch(asked)
		case "deliver":
			told = open.deliver(asked)
		case "unwatch":
			open.close()
		}
		text, err := json.Marshal(told)
		check(err)
		fmt.Println(string(text))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Bytes as they are.
type raw struct{}

func (raw) Name() string                       { return "proto" }
func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }

func messages(file string) [][]byte {
	data, err := os.ReadFile(file)
	check(err)
	var all [][]byte
	for len(data) > 0 {
		size := binary.BigEndian.Uint32(data)
		all = append(all, data[4:4+size])
		data = data[4+size:]
	}
	return all
}

func dial(address string, count int) []*grpc.ClientConn {
	conns := make([]*grpc.ClientConn, count)
	for i := range conns {
		conn, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
		check(err)
		conns[i] = conn
	}
	return conns
}

func bearer(token string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
}

// One call with a message.
type caller func(message []byte) error

func load(asked order) result {
	sent := messages(asked.File)
	var calls []caller
	if asked.HTTP {
		transport := &http.Transport{MaxIdleConnsPerHost: asked.Streams}
		defer transport.CloseIdleConnections()
		calls = []caller{overHTTP(asked, &http.Client{Transport: transport})}
	} else {
		for _, conn := range dial(asked.Address, asked.Connections) {
			defer conn.Close()
			calls = append(calls, overGRPC(asked, conn))
		}
	}
	var next atomic.Int64
	times := make([][]float64, asked.Streams)
	errors := make([]error, asked.Streams)
	failures := make([]int, asked.Streams)
	begun := time.Now()
	until := begun.Add(time.Duration(asked.Seconds * float64(time.Second)))
	var running sync.WaitGroup
	for i := range asked.Streams {
		running.Go(func() {
			call := calls[i%len(calls)]
			for time.Now().Before(until) {
				n := int(next.Add(1)) - 1
				if asked.Once && n >= len(sent) {
					return
				}
				from := time.Now()
				if err := call(sent[n%len(sent)]); err != nil {
					errors[i] = err
					failures[i]++
				}
				times[i] = append(times[i], milliseconds(time.Since(from)))
			}
		})
	}
	running.Wait()
	told := summary(slices.Concat(times...))
	told.Seconds = time.Since(begun).Seconds()
	for i, count := range failures {
		told.Errors += count
		if errors[i] != nil && told.Why == "" {
			told.Why = errors[i].Error()
		}
	}
	return told
}

func overGRPC(asked order, conn *grpc.ClientConn) caller {
	ctx := bearer(asked.Token)
	return func(message []byte) error {
		var answer []byte
		return conn.Invoke(ctx, asked.Method, &message, &answer)
	}
}

// A message is the path, the end of a line, and the body.
func overHTTP(asked order, client *http.Client) caller {
	return func(message []byte) error {
		path, body, _ := bytes.Cut(message, []byte("\n"))
		request, err := http.NewRequest(asked.Method, asked.Address+string(path), bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("authorization", "Bearer "+asked.Token)
		request.Header.Set("content-type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", response.Status, text)
		}
		return err
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func summary(times []float64) result {
	if len(times) == 0 {
		return result{}
	}
	slices.Sort(times)
	at := func(part float64) float64 { return times[min(len(times)-1, int(part*float64(len(times))))] }
	return result{Calls: len(times), P50: at(0.5), P99: at(0.99)}
}

// Open watches; each tells when an event came.
type watches struct {
	conns    []*grpc.ClientConn
	count    int
	arrivals chan time.Time
}

func watch(asked order) *watches {
	open := &watches{conns: dial(asked.Address, asked.Connections), count: asked.Streams}
	open.arrivals = make(chan time.Time, asked.Streams)
	request := messages(asked.File)[0]
	for i := range asked.Streams {
		stream, err := open.conns[i%len(open.conns)].NewStream(
			bearer(asked.Token), &grpc.StreamDesc{ServerStreams: true}, asked.Method)
		check(err)
		check(stream.SendMsg(&request))
		check(stream.CloseSend())
		_, err = stream.Header()
		check(err)
		go func() {
			for {
				var event []byte
				if stream.RecvMsg(&event) != nil {
					return
				}
				open.arrivals <- time.Now()
			}
		}()
	}
	return open
}

// One write after the other: milliseconds from its answer to its event at each watch. One that came before counts 0.
func (open *watches) deliver(asked order) result {
	conn := dial(asked.Address, 1)[0]
	defer conn.Close()
	call := overGRPC(asked, conn)
	var delays []float64
	for _, message := range messages(asked.File) {
		check(call(message))
		answered := time.Now()
		for range open.count {
			delays = append(delays, max(0, milliseconds((<-open.arrivals).Sub(answered))))
		}
	}
	return summary(delays)
}

func (open *watches) close() {
	for _, conn := range open.conns {
		conn.Close()
	}
}
