package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/examples/llk23/sweep"
	"fairway/lib/subprocess"
	"fairway/test/netns"
)

// Several hosts, as in the paper's figure 2c: 64 blocks and more, on more and more hosts. Each
// host is a network namespace with a line of its own; all have the processors of this machine
// together, so that what is measured is what the lines cost.

// line is how hosts are joined.
type line struct {
	Mbit  int
	Delay time.Duration // one way
}

var lines = []line{{1000, 0}, {100, 0}, {1000, time.Millisecond}}

const (
	hostsSize   = 1000 // rows and columns of the matrix
	hostsRounds = 3
	// hostsIterations are a little less than the paper's 100: a multiple of the sweeps at once.
	hostsIterations = 3 * sweep.DefaultSweeps
	// hostsBlocks is the least number of rows, and the number of columns of blocks.
	hostsBlocks = 8
)

// Schemes of tasks: that of package sweep, and the paper's.
const (
	schemeOurs  = "ours"
	schemePaper = "paper"
)

// hostRow is a measurement over hosts. One host has no line.
type hostRow struct {
	Hosts        int     `json:"hosts"`
	Mbit         int     `json:"mbit"`
	DelayMS      float64 `json:"delay_ms"` // one way
	Scheme       string  `json:"scheme"`
	N            int     `json:"n"`
	Blocks       int     `json:"blocks"`
	NSPerElement float64 `json:"ns_per_element"`
	MSPerSweep   float64 `json:"ms_per_iteration"`
	// WaitingShare is the share of the cores' time in which no main task computed.
	WaitingShare float64 `json:"waiting_share"`
	// OneHost is the time over that of one host with as many blocks.
	OneHost  float64 `json:"over_one_host"`
	SameBits bool    `json:"same_bits"`
	Rounds   int     `json:"rounds"`
}

func (r hostRow) String() string {
	return fmt.Sprintf("%2d hosts %4d Mbit/s %3.0f ms delay %-5s %5d² in %3d blocks %6.2f ns/element %7.2f ms/iteration  "+
		"waiting %.2f  over one host %5.2f  same bits %v", r.Hosts, r.Mbit, r.DelayMS, r.Scheme, r.N, r.Blocks,
		r.NSPerElement, r.MSPerSweep, r.WaitingShare, r.OneHost, r.SameBits)
}

// parseHosts reads numbers of hosts, separated by commas.
func parseHosts(list string) ([]int, error) {
	var counts []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 {
			return nil, fmt.Errorf("-hosts %s: give numbers from 2 on, separated by commas", list)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// overHosts measures both schemes over each number of hosts and each kind of line.
func overHosts(list string, n int) ([]hostRow, error) {
	counts, err := parseHosts(list)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		n = hostsSize
	}
	most := hostsBlocks
	for _, count := range counts {
		most = max(most, count)
	}
	bench := measure.NewHost("llk23", "")
	defer bench.End()
	network := netns.New(bench)
	var hosts []*netns.Host
	for k := range most {
		hosts = append(hosts, network.Add(fmt.Sprintf("llk%d", k), nil))
	}
	keys := bench.TempDir()
	if err := writeKeys(keys, hosts); err != nil {
		return nil, err
	}
	m := hostMeasurement{n: n, blocks: most, hosts: hosts, keys: keys, bits: make(map[int]string)}
	for _, scheme := range []string{schemeOurs, schemePaper} {
		iterations := m.config(1, line{}, scheme).Iterations
		m.bits[iterations] = hash(sweep.Sequential(n, iterations))
	}
	for _, scheme := range []string{schemeOurs, schemePaper} {
		if err := m.add(1, line{}, scheme); err != nil {
			return nil, err
		}
	}
	for _, l := range lines {
		for _, h := range hosts {
			h.LimitClosely(l.Mbit)
		}
		for _, count := range counts {
			for _, scheme := range []string{schemeOurs, schemePaper} {
				if err := m.add(count, l, scheme); err != nil {
					return nil, err
				}
			}
		}
	}
	return m.rows, nil
}

type hostMeasurement struct {
	n, blocks int
	hosts     []*netns.Host
	keys      string
	bits      map[int]string // of the sequential sweep, by iterations
	rows      []hostRow
}

func (m *hostMeasurement) config(count int, l line, scheme string) config {
	c := config{
		N: m.n, Cores: 2, Processes: count, Transport: "memory", Rows: m.blocks, Columns: hostsBlocks,
		Iterations: hostsIterations,
	}
	if scheme == schemePaper {
		c = c.theirs()
	}
	if count == 1 {
		return c
	}
	var namespaces, addresses []string
	for _, h := range m.hosts[:count] {
		namespaces, addresses = append(namespaces, h.Namespace()), append(addresses, h.Address)
	}
	c.Transport, c.Keys, c.Delay = "tcp", m.keys, l.Delay
	c.Namespaces, c.Addresses = strings.Join(namespaces, ","), strings.Join(addresses, ",")
	return c
}

// add measures a row.
func (m *hostMeasurement) add(count int, l line, scheme string) error {
	c := m.config(count, l, scheme)
	cmd, err := childCommand(c)
	if err != nil {
		return err
	}
	defer confineThread(c.Cores)()
	r, err := subprocess.Start(cmd)
	if err != nil {
		return err
	}
	row := hostRow{
		Hosts: count, Mbit: l.Mbit, DelayMS: l.Delay.Seconds() * 1000, Scheme: scheme, N: c.N, Blocks: c.Rows * c.Columns,
		SameBits: true, Rounds: hostsRounds,
	}
	var ns, waiting []float64
	for range hostsRounds {
		a, err := ask(r)
		if err != nil {
			return errors.Join(fmt.Errorf("%d hosts, %s: %w", count, scheme, err), r.Stop())
		}
		ns, waiting = append(ns, a.ns), append(waiting, a.waitingShare)
		row.SameBits = row.SameBits && a.hash == m.bits[c.Iterations]
	}
	row.NSPerElement, row.WaitingShare = measure.Median(ns), measure.Median(waiting)
	row.MSPerSweep = row.NSPerElement * float64((c.N-2)*(c.N-2)) / 1e6
	row.OneHost = 1
	for _, one := range m.rows {
		if one.Hosts == 1 && one.Scheme == scheme {
			row.OneHost = row.NSPerElement / one.NSPerElement
		}
	}
	m.rows = append(m.rows, row)
	fmt.Fprintln(os.Stderr, "llk23:", row)
	return r.Stop()
}

// repeatOverHosts is repeatPaper for several hosts.
func repeatOverHosts(list string, n int, folder, note string) error {
	rows, err := overHosts(list, n)
	if err != nil {
		return err
	}
	var text strings.Builder
	m := measure.ThisMachine()
	text.WriteString("# Kernel 23 over several hosts\n\n")
	text.WriteString(wrapped(fmt.Sprintf(
		"Made by `go run ./bench/llk23 -paper -hosts %s` on %d cores of %s: %d² in %d blocks, up to "+
			"%d iterations. Each host is a network namespace on this machine, with TLS between them. "+
			"Waiting is the share of the cores' time in which no main task computed. *Theirs* is the "+
			"paper's own scheme ([RESULTS-paper.md](RESULTS-paper.md)). %s",
		list, m.Cores, m.CPU, rows[0].N, rows[0].Blocks, hostsIterations, note)))
	text.WriteString("\n" + wrapped("Here: "+hostsHere(rows)))
	text.WriteString("\n| hosts | Mbit/s | delay, ms | ours: ms per iteration | over one host | waiting |" +
		" theirs | over one host | waiting | bits of one core |\n|" + strings.Repeat(" --- |", 10) + "\n")
	for k := 0; k+1 < len(rows); k += 2 {
		ours, theirs := rows[k], rows[k+1]
		fmt.Fprintf(&text, "| %d | %d | %g | %.2f | %.2f | %.0f %% | %.2f | %.2f | %.0f %% | %v |\n", ours.Hosts, ours.Mbit,
			ours.DelayMS, ours.MSPerSweep, ours.OneHost, 100*ours.WaitingShare, theirs.MSPerSweep, theirs.OneHost,
			100*theirs.WaitingShare, ours.SameBits && theirs.SameBits)
	}
	return os.WriteFile(filepath.Join(folder, "RESULTS-hosts.md"), []byte(text.String()), 0o644)
}

// Files in the folder of keys. All hosts have the same certificate.
const (
	certificateFile = "certificate.pem"
	keyFile         = "key.pem"
)

// writeKeys makes a certificate for all hosts, which signs itself, for a day.
func writeKeys(folder string, hosts []*netns.Host) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(h.Address))
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	write := func(name, kind string, bytes []byte) error {
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		return os.WriteFile(filepath.Join(folder, name), text, 0o600)
	}
	return errors.Join(write(certificateFile, "CERTIFICATE", certificate), write(keyFile, "EC PRIVATE KEY", private))
}
