package bfd

// queue is a heap of sessions by what is due first.
type queue []*peer

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push and Pop are for package heap.
func (q *queue) Push(x any) {
	p := x.(*peer)
	p.index = len(*q)
	*q = append(*q, p)
}

// Pop removes the last element.
func (q *queue) Pop() any {
	old := *q
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	p.index = -1
	return p
}
