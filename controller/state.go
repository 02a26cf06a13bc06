package controller

import (
	"time"
)

// State is the present plan as /state shows it, beside what the cluster and the
// Problems say.
type State struct {
	Kind     string         `json:"kind"`
	Leading  bool           `json:"leading"`
	Holdings []HoldingState `json:"holdings"`
	NextWake *time.Time     `json:"nextWake,omitempty"`
}

// HoldingState says who sits on an address.
type HoldingState struct {
	Address string `json:"address"`
	Service string `json:"service"`
	Pool    string `json:"pool,omitempty"`
	Pending bool   `json:"pending,omitempty"`
}

// State returns the present plan for /state.
func (h *Controller) State() State {
	s := State{Kind: "controller", Leading: h.leading.Load(), Holdings: []HoldingState{}}
	if plan := h.plan.Load(); plan != nil {
		for _, held := range plan.Holdings {
			s.Holdings = append(s.Holdings, HoldingState{held.Address.String(), held.Service.String(), held.Pool, held.Pending})
		}
		if !plan.NextWake.IsZero() {
			s.NextWake = &plan.NextWake
		}
	}
	return s
}
