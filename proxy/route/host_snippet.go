package route

import (
	"fmt"
	"slices"
)

// hostSnippet notes whose server-snippet says something of the host.
func (b *unitBuilder) hostSnippet() {
	for _, c := range b.parts {
		c.ofHost = b.settings.ofHost
	}
}

// tellOfHost tells an Ingress whose server-snippet says something of the host that it does not
// hold here for the paths that another has there.
func (b *hostBuilder) tellOfHost(parts []*part) {
	for _, c := range parts {
		if !c.ofHost {
			continue
		}
		i := slices.IndexFunc(parts, func(other *part) bool {
			return other.unit != c.unit && (len(other.routes) > 0 || other.fallback != nil)
		})
		if i >= 0 {
			b.told(c, InvalidAnnotation, fmt.Sprintf("host %s: annotation server-snippet acts in part: what it sets holds for the paths of this Ingress alone, and %s has others there", c.host, parts[i].unit.ref))
		}
	}
}
