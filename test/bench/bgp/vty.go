package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
)

// vty asks a daemon of FRR as vtysh does, without a process for each question.
type vty struct {
	net.Conn
	from *bufio.Reader
}

func (h *host) vty(daemon string) (*vty, error) {
	c, err := net.Dial("unix", filepath.Join(h.dir, daemon+".vty"))
	if err != nil {
		return nil, err
	}
	v := &vty{c, bufio.NewReader(c)}
	_, err = v.ask("enable")
	return v, err
}

// ask returns the answer to a command. It ends with three zero bytes and a status.
func (v *vty) ask(command string) ([]byte, error) {
	if _, err := v.Write(append([]byte(command), 0)); err != nil {
		return nil, err
	}
	var answer []byte
	for zeros := 0; zeros < 3; {
		b, err := v.from.ReadByte()
		if err != nil {
			return nil, err
		}
		if zeros++; b != 0 {
			answer, zeros = append(answer, b), 0
		}
	}
	status, err := v.from.ReadByte()
	if err == nil && status != 0 {
		err = fmt.Errorf("%s: status %d: %s", command, status, answer)
	}
	return answer, err
}

// learned is how many prefixes a router has from all its peers together.
func (v *vty) learned() (n int, err error) {
	answer, err := v.ask("show bgp ipv4 unicast summary json")
	if err != nil {
		return 0, err
	}
	var summary struct {
		Peers map[string]struct{ PfxRcd int }
	}
	if err := json.Unmarshal(answer, &summary); err != nil {
		return 0, fmt.Errorf("%w: %.100s", err, answer)
	}
	for _, p := range summary.Peers {
		n += p.PfxRcd
	}
	return n, nil
}

// knows reports whether a router has a path to a prefix, and whether it uses it.
func (v *vty) knows(prefix string) (known, used bool, err error) {
	answer, err := v.ask("show bgp ipv4 unicast " + prefix + " json")
	if err != nil {
		return false, false, err
	}
	var entry struct {
		Paths []struct{ Bestpath struct{ Overall bool } }
	}
	_ = json.Unmarshal(answer, &entry) // one that is not there is no JSON
	for _, p := range entry.Paths {
		known, used = true, used || p.Bestpath.Overall
	}
	return known, used, nil
}
