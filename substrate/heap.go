package substrate

import "container/heap"

// timed is something that becomes due. before orders by that time; place is where it is in its heap.
type timed[T any] interface {
	comparable
	before(T) bool
	place() *int
}

// timers is a heap of what becomes due, the first at index 0.
type timers[T timed[T]] struct{ items heapOf[T] }

func (h *timers[T]) len() int { return len(h.items) }

// first returns what becomes due first. There must be something.
func (h *timers[T]) first() T { return h.items[0] }

func (h *timers[T]) push(x T)   { heap.Push(&h.items, x) }
func (h *timers[T]) remove(x T) { heap.Remove(&h.items, *x.place()) }
func (h *timers[T]) fix(x T)    { heap.Fix(&h.items, *x.place()) }

// has reports whether x, which was pushed once, is still there.
func (h *timers[T]) has(x T) bool {
	i := *x.place()
	return i < len(h.items) && h.items[i] == x
}

// each calls yield in order for as long as it returns true, and changes nothing. It costs what it yields: the frontier
// holds the nodes of the heap whose parents were yielded.
func (h *timers[T]) each(yield func(T) bool) {
	var frontier heapOf[*node[T]]
	push := func(i int) {
		if i < len(h.items) {
			heap.Push(&frontier, &node[T]{item: h.items[i], at: i})
		}
	}
	for push(0); len(frontier) > 0; {
		n := heap.Pop(&frontier).(*node[T]) //nolint:forcetypeassert // as pushed above
		if !yield(n.item) {
			return
		}
		push(2*n.at + 1)
		push(2*n.at + 2)
	}
}

// node is an item of a heap on the frontier of a walk.
type node[T timed[T]] struct {
	item  T
	at    int
	index int
}

func (n *node[T]) before(m *node[T]) bool { return n.item.before(m.item) }
func (n *node[T]) place() *int            { return &n.index }

// heapOf implements container/heap's interface.
type heapOf[T timed[T]] []T

func (h heapOf[T]) Len() int           { return len(h) }
func (h heapOf[T]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h heapOf[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = i, j
}

// Push implements heap.Interface.
func (h *heapOf[T]) Push(x any) {
	t := x.(T) //nolint:forcetypeassert // container/heap gives back what push gave it
	*t.place() = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *heapOf[T]) Pop() any {
	old := *h
	x := old[len(old)-1]
	var none T
	old[len(old)-1] = none
	*h = old[:len(old)-1]
	return x
}
