package privatefile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Write puts content in the place of what is in a file, at once.
func Write(path string, content []byte) error {
	fresh := path + ".new" // of one process; what it left half done is written over
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync() // else the name may outlive a loss of power, and the content not
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}

// Read returns the content of a file that Write made, if it has at most so many bytes.
// The error is os.ErrNotExist if there is none.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|plainly, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Mode().Perm()&others != 0:
		return nil, fmt.Errorf("%s is open to others: mode %v", path, info.Mode().Perm())
	case !isOurs(info):
		return nil, fmt.Errorf("%s belongs to somebody else", path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), most)
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s grows", path)
	}
	return content, err
}
