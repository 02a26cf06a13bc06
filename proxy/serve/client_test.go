package serve

import (
	"net"
	"testing"
	"time"
)

// slowConn is a connection on which setting the first deadline takes a while.
type slowConn struct {
	net.Conn
	during   func()
	deadline time.Time
}

func (c *slowConn) SetReadDeadline(t time.Time) error {
	if during := c.during; during != nil {
		c.during = nil
		during()
	}
	c.deadline = t
	return nil
}

// A reader that is about to wait longer must not undo that reading has ended.
func TestStopReadingWinsOverADeadline(t *testing.T) {
	slow := &slowConn{}
	c := &client{Conn: slow, server: New(Options{Timeout: time.Minute})}
	stopped := make(chan struct{})
	slow.during = func() {
		go func() {
			c.stopReading()
			close(stopped)
		}()
		select { // while stopReading waits for us, it cannot have been overtaken
		case <-stopped:
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := c.keepReading(); err != nil {
		t.Fatal(err)
	}
	<-stopped
	if slow.deadline.After(time.Now()) {
		t.Errorf("reading was stopped, and goes on until %v", slow.deadline)
	}
	c.keepReading()
	c.SetDeadline(time.Time{})
	if slow.deadline.IsZero() || slow.deadline.After(time.Now()) {
		t.Errorf("reading goes on until %v", slow.deadline)
	}
}

func (c *slowConn) SetWriteDeadline(time.Time) error { return nil }

func (c *slowConn) SetDeadline(t time.Time) error { c.deadline = t; return nil }
