package due

import (
	"cmp"
	"container/heap"
	"time"
)

// Entry is one thing that may be due. The zero Entry is in no Queue.
type Entry[T any] struct {
	Value T

	at     time.Time
	number uint64 // of the Set that put it where it is
	place  int    // in the heap, from 1; 0: in no queue
}

// At is when the entry is due; it means nothing while the entry is in no Queue.
func (e *Entry[T]) At() time.Time { return e.at }

// Queue holds entries by when they are due. The zero Queue is empty. It is not
// safe for use by several goroutines.
type Queue[T any] struct {
	entries entries[T]
	number  uint64
}

// Set puts e into the queue, or moves it there.
func (q *Queue[T]) Set(e *Entry[T], at time.Time) {
	q.number++
	e.at, e.number = at, q.number
	if e.place == 0 {
		heap.Push(&q.entries, e)
	} else {
		heap.Fix(&q.entries, e.place-1)
	}
}

// Remove takes e out of the queue, if it is there.
func (q *Queue[T]) Remove(e *Entry[T]) {
	if e.place > 0 {
		heap.Remove(&q.entries, e.place-1)
	}
}

// First is the entry that is due first; nil: the queue is empty.
func (q *Queue[T]) First() *Entry[T] {
	if len(q.entries) == 0 {
		return nil
	}
	return q.entries[0]
}

// entries is a heap, for package heap.
type entries[T any] []*Entry[T]

func (e entries[T]) Len() int { return len(e) }
func (e entries[T]) Less(i, j int) bool {
	return cmp.Or(e[i].at.Compare(e[j].at), cmp.Compare(e[i].number, e[j].number)) < 0
}
func (e entries[T]) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].place, e[j].place = i+1, j+1
}

// Push appends an element.
func (e *entries[T]) Push(x any) {
	one := x.(*Entry[T])
	*e = append(*e, one)
	one.place = len(*e)
}

// Pop removes the last element.
func (e *entries[T]) Pop() any {
	last := len(*e) - 1
	one := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	one.place = 0
	return one
}
