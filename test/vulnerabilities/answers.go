package main

// answers say why an entry of the database is none of ours, by its number. One that the
// database no longer has, or whose code we no longer call, is reported until it is deleted.
func answers() map[string]string {
	return map[string]string{
		"GO-2026-4736": "gobgp's server panics on a NEXT_HOP that is too short. We have the codec of its packet package alone, decode under recover, and look at no NEXT_HOP; " +
			"the entry names no function of version 3, so that each call counts",
	}
}
