package announce

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
)

// Preferences decide where a free address goes. They are no reason to move one, since that
// cuts its connections: a preferred node that joins or returns takes nothing. But an edit of
// the preferences is meant for existing addresses, too. So a claim is published with a
// fingerprint of the preferences under which it was made, and while that differs from the
// current one, the address may move to a node of greater weight. Until it is published, the
// node that made it keeps the fingerprint: an edit may come before.

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
			if !slices.Contains(counted, a) { // a second Service on the address is no edit
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

// publishedClaim is a claim in a SpeakerStatus, with the fingerprint of the preferences
// under which it was made.
type publishedClaim struct {
	Claim
	preference string
}

// publishedPreference is the fingerprint that the holder of e has published with its claim,
// and whether it has published the claim.
func (k *compiler) publishedPreference(e *address) (preference string, told bool) {
	p, told := k.published[e.addr]
	return p.preference, told && p.Claim == e.claim
}

// outpreferred reports whether e, held by node i, should move because its preferences have
// changed. A claim that is not published does not move for that.
func (k *compiler) outpreferred(e *address, i int) bool {
	preference, told := k.publishedPreference(e)
	if !told {
		preference = "" // that of another claim
	}
	others := preference != k.preferenceText(e) && k.outweighed(e, i)
	e.outpreferred, e.untold = told && others, !told && others
	return e.outpreferred
}

// outweighed reports whether another candidate for e is preferred to node i.
func (k *compiler) outweighed(e *address, i int) bool {
	has := k.weight(e, i)
	return slices.ContainsFunc(k.candidates(e), func(c int) bool { return k.weight(e, c) > has })
}

// renewed is published instead of a fingerprint with a claim that was remembered from an
// earlier Service on the address: the preferences of that one are not known.
const renewed = "renewed"

// preference is the fingerprint that node i, this one, publishes with its claim on e. It
// stays the old one until the node that is preferred now has taken the address.
func (k *compiler) preference(e *address, i int) string {
	preference, told := k.publishedPreference(e)
	if e.outpreferred {
		return preference
	}
	current := k.preferenceText(e)
	if told || !k.preferring {
		return current
	}
	placed, kept := k.view.Placed[e.addr]
	if _, remembered := k.view.Remembered[e.addr]; remembered {
		placed, kept = renewed, true
	}
	if kept && placed != current && k.outweighed(e, i) {
		return placed
	}
	return current
}
