package frame

// Queue holds bytes in the order in which they came.
type Queue struct {
	b     []byte
	start int
}

// keptQueue is the largest memory that Reset keeps.
const keptQueue = 16 << 10

// Len is how many bytes there are.
func (q *Queue) Len() int { return len(q.b) - q.start }

// Bytes returns all of them; they are valid until the next Write.
func (q *Queue) Bytes() []byte { return q.b[q.start:] }

// Write appends p.
func (q *Queue) Write(p []byte) {
	if len(q.b)+len(p) > cap(q.b) && q.start > 0 {
		q.b = q.b[:copy(q.b, q.b[q.start:])]
		q.start = 0
	}
	q.b = append(q.b, p...)
}

// Read moves bytes into p and returns how many.
func (q *Queue) Read(p []byte) int {
	n := copy(p, q.b[q.start:])
	if q.start += n; q.start == len(q.b) {
		q.b, q.start = q.b[:0], 0
	}
	return n
}

// Drop empties the queue and returns how much there was. Its memory is not used
// again: somebody may have been shown it.
func (q *Queue) Drop() int {
	n := q.Len()
	*q = Queue{}
	return n
}

// Reset empties the queue for another use, and keeps its memory if that is small.
func (q *Queue) Reset() {
	if q.b, q.start = q.b[:0], 0; cap(q.b) > keptQueue {
		q.b = nil
	}
}
