package announce

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
)

// Preferences place an address that nobody holds. They are no reason to move
// one, since that cuts its connections: a preferred node that joins or returns
// takes nothing. But who edits them means the addresses that exist. So a claim
// is published with a fingerprint of the preferences it was made under, and
// while that is not today's, the address may move to a node of more weight.

// fingerprintOf is the fingerprint of the preferences of one advertisement; 0: none.
func fingerprintOf(terms []v1alpha1.PreferredNode, parsed []labels.Selector) (preference uint64) {
	for i, s := range parsed {
		preference += hashString(strconv.Itoa(int(terms[i].Weight)) + " " + s.String())
	}
	return preference
}

// preferenceText is the fingerprint of the preferences that apply to e.
func (k *compiler) preferenceText(e *address) string {
	if !k.preferring {
		return ""
	}
	var preference uint64
	counted := make([]int, 0, 8)
	for _, u := range e.users {
		for _, a := range u.adverts {
			if !slices.Contains(counted, a) { // who shares the address edits nothing
				counted = append(counted, a)
				preference += k.adverts[a].preference
			}
		}
	}
	if preference == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", preference)
}

// pledge is what a SpeakerStatus says of one claim, and under which preferences
// it was made.
type pledge struct {
	Claim
	preference string
}

// pledgeOf is what the status of the node that holds e says of the claim.
func (k *compiler) pledgeOf(e *address) (preference string, told bool) {
	p, told := k.published[e.addr]
	return p.preference, told && p.Claim == e.claim
}

// outpreferred reports whether e, held by node i, should move because its
// preferences have changed. What no status mentions counts as settled.
func (k *compiler) outpreferred(e *address, i int) bool {
	preference, told := k.pledgeOf(e)
	e.outpreferred = told && preference != k.preferenceText(e) && k.outweighed(e, i)
	return e.outpreferred
}

// outweighed reports whether another candidate for e is preferred to node i.
func (k *compiler) outweighed(e *address, i int) bool {
	has := k.weight(e, i)
	return slices.ContainsFunc(k.candidates(e), func(c int) bool { return k.weight(e, c) > has })
}

// renewed is published with a claim that was remembered from an earlier Service
// on the address: it was made under whatever preferences that one had.
const renewed = "renewed"

// preference is what node i, this one, publishes with its claim on e. Until the
// node that is preferred now has taken the address, the claim is of the old
// time.
func (k *compiler) preference(e *address, i int) string {
	preference, told := k.pledgeOf(e)
	if e.outpreferred {
		return preference
	}
	if _, remembered := k.view.Remembered[e.addr]; remembered && !told && k.preferring && k.outweighed(e, i) {
		return renewed
	}
	return k.preferenceText(e)
}
