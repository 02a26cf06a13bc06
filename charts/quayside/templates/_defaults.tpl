{{- /*
Gives .Values what a release of an older chart has not got: `helm upgrade --reuse-values`
brings its values alone, without the defaults of this chart, and so does whoever takes
away a value with null. Every file that reads values begins with it. The defaults are in
defaults.yaml, which is values.yaml once more, since templates cannot read that one. All files share their values, so the first that is
rendered does it for all.
*/}}
{{- define "quayside.defaults" -}}
{{- if not (hasKey .Values "complete") -}}
{{- include "quayside.fill" (list .Values (.Files.Get "defaults.yaml" | fromYaml)) -}}
{{- $_ := set .Values "complete" true -}}
{{- end -}}
{{- end }}

{{- /*
What users shape as a whole comes back neither in part nor as a whole: null is how to have
no resources, or no nodeSelector. Call with (list values defaults).
*/}}
{{- define "quayside.fill" -}}
{{- $have := index . 0 -}}
{{- range $key, $default := index . 1 -}}
{{- $shaped := has $key (list "resources" "nodeSelector" "tolerations" "updateStrategy" "ports" "labels") -}}
{{- if kindIs "map" (get $have $key) -}}
{{- if not $shaped -}}
{{- include "quayside.fill" (list (get $have $key) $default) -}}
{{- end -}}
{{- else if not (hasKey $have $key) -}}
{{- $_ := set $have $key ($shaped | ternary (kindIs "slice" $default | ternary list dict) $default) -}}
{{- end -}}
{{- end -}}
{{- end }}
