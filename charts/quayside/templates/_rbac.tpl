{{- /*
A role and its binding. Call with (dict "root" $ "component" "proxy" "scope" NAMESPACE
"suffix" "" "rules" "…yaml…"); an empty scope is the whole cluster, for any word is the
name of somebody's namespace.
*/}}
{{- define "quayside.role" -}}
{{- $self := list .root .component -}}
{{- $cluster := not .scope -}}
{{- $kind := $cluster | ternary "ClusterRole" "Role" -}}
{{- $name := printf "%s-%s%s" (include "quayside.fullname" .root) .component .suffix -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- if not $cluster }}
  namespace: {{ .scope }}
  {{- end }}
  labels:
    {{- include "quayside.labels" $self | nindent 4 }}
rules:
{{ .rules | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- if not $cluster }}
  namespace: {{ .scope }}
  {{- end }}
  labels:
    {{- include "quayside.labels" $self | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ include "quayside.serviceAccountName" $self }}
  namespace: {{ include "quayside.namespace" $self }}
{{- end }}
{{- /* The right of a component to see how many of its kind start at the same time. Call with (list root component kind). */}}
{{- define "quayside.role.workload" -}}
{{- $root := index . 0 -}}
---
{{ include "quayside.role" (dict "root" $root "component" (index . 1) "scope" (include "quayside.namespace" (list $root (index . 1))) "suffix" "-workload" "rules" (include "quayside.rules.workload" .)) }}
{{- end }}
{{- define "quayside.rules.workload" -}}
- apiGroups: [apps]
  resources: [{{ index . 2 | lower }}s]
  resourceNames: [{{ include "quayside.fullname" (index . 0) }}-{{ index . 1 }}]
  verbs: [get]
{{- end }}
{{- /* The right to ask whose a token is and what that user may do, for the admin port. Neither call changes anything. */}}
{{- define "quayside.rules.reviews" -}}
{{- if eq .Values.adminAuth "Token" }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- end }}
{{- /* Not empty where the controller sees to what the proxies may read: grants it, or takes back what it granted before. */}}
{{- define "quayside.grants" -}}
{{- if and .Values.rbac.create .Values.proxy.enabled }}{{ .Values.proxy.secretAccess }}{{ end -}}
{{- end }}
{{- /* Not empty where the controller grants what the speakers may read. */}}
{{- define "quayside.grants.speaker" -}}
{{- if and .Values.rbac.create .Values.speaker.enabled }}true{{ end -}}
{{- end }}
{{- /* The right to read the ConfigMap with proxy-wide options, and no other. */}}
{{- define "quayside.rules.configMap" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "quayside.configMap" . | splitList "/" | last }}]
  verbs: [get, list, watch]
{{- end }}
{{- define "quayside.role.configMap" -}}
{{- with include "quayside.configMap" .root }}
---
{{ include "quayside.role" (dict "root" $.root "component" $.component "scope" (splitList "/" . | first) "suffix" "-options" "rules" (include "quayside.rules.configMap" $.root)) }}
{{- end }}
{{- end }}
