package command

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/cluster/privatefile"
)

// lastKnownFlags say where a process keeps what its next life needs to work while the
// API server is away.
type lastKnownFlags struct {
	dir    string
	maxAge time.Duration
}

func (f *lastKnownFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "last-known", "", "folder for what this process knows of the cluster, Secrets included, so that it can work after a restart while the API server is away; empty: it is not kept")
	flags.DurationVar(&f.maxAge, "last-known-max-age", 24*time.Hour, "how old what is kept there may be when it is used; at least 1m")
}

func (f *lastKnownFlags) options() (cluster.LastKnown, error) {
	if f.maxAge < time.Minute {
		return cluster.LastKnown{}, fmt.Errorf("%w: --last-known-max-age %v: want at least 1m", errBadInput, f.maxAge)
	}
	if f.dir == "" {
		return cluster.LastKnown{}, nil
	}
	return cluster.LastKnown{File: filepath.Join(f.dir, "cluster"), MaxAge: f.maxAge}, nil
}

// signingKey is the key with which a speaker signs gossip. It is kept: while the API
// server is away, the others know that of its former life only, and would believe no
// word of a speaker that has another. One that cannot be kept or read is a new one.
func (f *lastKnownFlags) signingKey(log *slog.Logger) ed25519.PrivateKey {
	_, fresh, _ := ed25519.GenerateKey(nil) // it reads from crypto/rand, which never fails
	if f.dir == "" {
		return fresh
	}
	file := filepath.Join(f.dir, "signing-key")
	seed, err := privatefile.Read(file, ed25519.SeedSize)
	switch {
	case err == nil && len(seed) == ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(seed)
	case err == nil:
		err = fmt.Errorf("%s has %d bytes, not %d", file, len(seed), ed25519.SeedSize)
	case errors.Is(err, os.ErrNotExist):
		err = nil
	}
	if err := errors.Join(err, privatefile.Write(file, fresh.Seed())); err != nil {
		log.Warn("this speaker signs with a new key, which the others do not believe before they have it from the API server", "error", err)
	}
	return fresh
}
