package assign

// ConditionAddress is the type of the Service condition that says whether the
// Service has its address and if not, why.
const ConditionAddress = "quayside.io/Address"

// Reasons of the condition quayside.io/Address and of Problems about Services.
const (
	ReasonAssigned            = "Assigned"            // it has what it asks for
	ReasonNoPool              = "NoPool"              // there is no pool at all
	ReasonPoolNotFound        = "PoolNotFound"        // the pool asked for does not exist
	ReasonPoolNotAllowed      = "PoolNotAllowed"      // no pool, or not the one asked for, serves it
	ReasonPoolDraining        = "PoolDraining"        // the pool gives nothing new
	ReasonPoolExhausted       = "PoolExhausted"       // every address is in use
	ReasonPoolResting         = "PoolResting"         // every free address still rests
	ReasonNoAddressOfFamily   = "NoAddressOfFamily"   // no pool that serves it has the family
	ReasonBadRequest          = "BadRequest"          // the request cannot be read
	ReasonConflictingRequest  = "ConflictingRequest"  // two requests contradict each other
	ReasonAddressOutsidePools = "AddressOutsidePools" // the address is in no pool
	ReasonAddressInUse        = "AddressInUse"        // somebody holds it and does not share
	ReasonNodeAddress         = "NodeAddress"         // it is a node's own
	ReasonFamilyMismatch      = "FamilyMismatch"      // the Service does not have that family
	ReasonForeignAddress      = "ForeignAddress"      // another controller gave an address that is not ours
	ReasonAddressLeaving      = "AddressLeaving"      // its pool is gone, and so it will be
	ReasonBeingDeleted        = "BeingDeleted"        // it gets nothing new on its way out
	// ReasonSharedAcrossNamespaces is a Problem only: an adopted share stays.
	ReasonSharedAcrossNamespaces = "SharedAcrossNamespaces"
	// ReasonPublishServiceNotFound is a Problem only, of Options.PublishService.
	ReasonPublishServiceNotFound = "PublishServiceNotFound"
)

// ReasonShared is the reason of the condition loadbalancer.ConditionSharing.
const ReasonShared = "Shared"

// Reasons of the conditions Ready and Advertised and of Problems about pools.
const (
	ReasonUsable            = "Usable"
	ReasonBadAddresses      = "BadAddresses"
	ReasonBadReserved       = "BadReserved"
	ReasonBadSelector       = "BadSelector"
	ReasonOverlap           = "Overlap"
	ReasonNoAddresses       = "NoAddresses"
	ReasonNodeAddressInPool = "NodeAddressInPool"
	ReasonExternalIPsInPool = "ExternalIPsInPool"
	ReasonAdvertised        = "Advertised"
	ReasonNotAdvertised     = "NotAdvertised"
)

// Reasons of events about what a Service gets and loses. What it lacks is a Problem,
// whose Event has the reason of the Problem.
const (
	EventAllocated = "IPAllocated"
	EventAdopted   = "IPAdopted"
	EventCleared   = "ClearAssignment"
)
