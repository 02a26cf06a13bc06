package route

// Reasons of the Problems that Compile finds.
const (
	EmptyIngress          = "EmptyIngress"          // it has no routes
	InvalidHost           = "InvalidHost"           // the rule is left out
	InvalidPath           = "InvalidPath"           // the path is left out
	LiteralPath           = "LiteralPath"           // what looks like a pattern is taken letter by letter
	MissingService        = "MissingService"        // the route answers 503
	MissingPort           = "MissingPort"           // the route answers 503
	TargetPortNamed       = "TargetPortNamed"       // the route serves by the port that leads there
	UnsupportedBackend    = "UnsupportedBackend"    // the route answers 503
	DuplicatePath         = "DuplicatePath"         // an older Ingress serves the path
	DuplicateDefault      = "DuplicateDefault"      // an older Ingress has the default backend
	DuplicateTLS          = "DuplicateTLS"          // an older Ingress has the host's certificate
	MissingSecret         = "MissingSecret"         // the default certificate is served
	UnreadReference       = "UnreadReference"       // a Secret or ConfigMap that could not be read: as if it were missing
	InvalidSecret         = "InvalidSecret"         // the default certificate is served
	CertificateMismatch   = "CertificateMismatch"   // the default certificate is served
	CertificateExpired    = "CertificateExpired"    // the certificate is served all the same
	CertificateNameless   = "CertificateNameless"   // the certificate is served all the same
	UnknownAnnotation     = "UnknownAnnotation"     // no effect
	InvalidAnnotation     = "InvalidAnnotation"     // no effect
	UnsupportedAnnotation = "UnsupportedAnnotation" // no effect
	MissingConfigMap      = "MissingConfigMap"      // proxy-wide options have their defaults
	UnknownOption         = "UnknownOption"         // of the ConfigMap; no effect
	InvalidOption         = "InvalidOption"         // of the ConfigMap; no effect
	UnsupportedOption     = "UnsupportedOption"     // of the ConfigMap; no effect
	HostOwned             = "HostOwned"             // another namespace has the host
	AliasUnused           = "AliasUnused"           // the host has rules of its own
	CanaryUnused          = "CanaryUnused"          // the canary gets no requests
	PassthroughUnused     = "PassthroughUnused"     // TLS for the host, or a path of it, does not reach the backend
	HTTP2Unused           = "HTTP2Unused"           // an older Ingress of the host says otherwise
	RouteClosed           = "RouteClosed"           // the route answers 503
)
