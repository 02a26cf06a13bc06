package filter

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tg123/go-htpasswd"
	"golang.org/x/crypto/bcrypt"

	"quayside.io/proxy/exchange"
)

// Users are the users of basic authentication. It remembers who has shown the
// right password, because checking one again takes up to a tenth of a second; what
// it keeps is a hash keyed with the content that it was read from.
type Users struct {
	hashes map[string]htpasswd.EncodedPasswd
	decoy  htpasswd.EncodedPasswd // stands in for users that do not exist
	key    [sha256.Size]byte
	passed [256]atomic.Pointer[[sha256.Size]byte]
}

// ParseUsers reads an htpasswd file: "user:hash" lines with bcrypt, apr1 (or MD5
// crypt), {SHA}, {SSHA} and SHA-2 crypt hashes or {PLAIN} passwords, perhaps with ":comment"
// behind them. The first line of a user counts. It names the users whose hash is of another kind;
// they cannot pass.
func ParseUsers(content []byte) (users *Users, unknown []string, err error) {
	u := &Users{hashes: map[string]htpasswd.EncodedPasswd{}, key: sha256.Sum256(content)}
	read := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, hash, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, nil, errors.New("a line is not \"user:hash\"")
		}
		if read[name] {
			continue
		}
		read[name] = true
		hash, _, _ = strings.Cut(hash, ":") // none has a colon
		if err := u.add(name, hash); err != nil {
			unknown = append(unknown, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if len(u.hashes) == 0 {
		return nil, unknown, errors.New("there is no user with a hash that is understood")
	}
	return u, unknown, nil
}

func (u *Users) add(name, hash string) error {
	if len(name) == 0 || len(name) > exchange.MaxCredentials {
		return errors.New("the name is too long")
	}
	if !affordable(hash) {
		return errors.New("the hash is malformed or takes too long to check")
	}
	for _, parse := range []htpasswd.PasswdParser{
		htpasswd.AcceptBcrypt, htpasswd.AcceptMd5, htpasswd.AcceptSha, htpasswd.AcceptSsha, htpasswd.AcceptCryptSha, acceptPlain,
	} {
		encoded, err := parse(hash)
		if err != nil {
			return err
		}
		if encoded == nil {
			continue
		}
		u.hashes[name] = encoded
		if u.decoy == nil {
			u.decoy = encoded
		}
		return nil
	}
	return fmt.Errorf("the hash of %s is of an unknown kind", name)
}

// plain is a password that is not hashed, which nginx takes and nobody should write.
type plain [sha256.Size]byte

func acceptPlain(hash string) (htpasswd.EncodedPasswd, error) {
	password, ok := strings.CutPrefix(hash, "{PLAIN}")
	if !ok {
		return nil, nil
	}
	return plain(sha256.Sum256([]byte(password))), nil
}

// MatchesPassword takes as long for any password.
func (p plain) MatchesPassword(password string) bool {
	sum := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(p[:], sum[:]) == 1
}

// affordable reports whether checking a password takes a second at most: whoever
// writes the Secret must not be able to stop the proxy with it.
func affordable(hash string) bool {
	const maxCost, maxRounds = 14, 200_000
	if strings.HasPrefix(hash, "$2") {
		cost, err := bcrypt.Cost([]byte(hash))
		return err == nil && cost <= maxCost
	}
	if _, after, ok := strings.Cut(hash, "$rounds="); ok {
		digits, _, _ := strings.Cut(after, "$")
		n, err := strconv.Atoi(digits)
		return err == nil && n <= maxRounds
	}
	return true
}

// guard is the guard of basic authentication.
func (u *Users) guard(ex *exchange.Exchange) int {
	var buf [sha256.Size + exchange.MaxCredentials]byte
	credentials, ok := exchange.BasicCredentials(buf[sha256.Size:sha256.Size], ex.Request.Header.Get("Authorization"))
	if !ok {
		return 401
	}
	copy(buf[:], u.key[:])
	sum := sha256.Sum256(buf[:sha256.Size+len(credentials)])
	slot := &u.passed[sum[0]]
	if seen := slot.Load(); seen != nil && subtle.ConstantTimeCompare(seen[:], sum[:]) == 1 {
		return 0
	}
	name, password, ok := bytes.Cut(credentials, []byte{':'})
	if !ok || !u.matches(string(name), string(password)) {
		return 401
	}
	keep := sum
	slot.Store(&keep)
	return 0
}

// matches takes as long for a user who does not exist.
func (u *Users) matches(name, password string) bool {
	hash, exists := u.hashes[name]
	if !exists {
		hash = u.decoy
	}
	return hash.MatchesPassword(password) && exists
}
