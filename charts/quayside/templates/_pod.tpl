{{- /* Metadata of a component's pods: no version, so that a new chart with the same image restarts nothing. */}}
{{- define "quayside.pod.metadata" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
labels:
  {{- include "quayside.selector" . | nindent 2 }}
  {{- with $root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $own.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $own.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What every pod spec has: who it is and where it runs. */}}
{{- define "quayside.pod.spec" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
serviceAccountName: {{ include "quayside.serviceAccountName" . }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with $own.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* A default with the values that somebody sets over it; a value replaces the whole of its key. Call with (list default values). */}}
{{- define "quayside.over" -}}
{{- $merged := index . 0 -}}
{{- range $key, $value := index . 1 }}
{{- $_ := set $merged $key $value -}}
{{- end }}
{{- toYaml $merged }}
{{- end }}

{{- /* Spread over nodes as far as possible, unless the values say otherwise. */}}
{{- define "quayside.pod.spread" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
topologySpreadConstraints:
{{- if $own.topologySpreadConstraints }}
{{ toYaml $own.topologySpreadConstraints }}
{{- else }}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "quayside.selector" . | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{- /* The container's image, and flags that every command takes. */}}
{{- define "quayside.container.image" -}}
image: {{ include "quayside.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "quayside.container.commonArgs" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
- --namespace={{ $root.Release.Namespace }}
- --admin=:{{ $own.adminPort }}
- --log-level={{ $root.Values.log.level }}
- --log-format={{ $root.Values.log.format }}
{{- end }}

{{- /* Further flags and environment of a component, its resources and probes. */}}
{{- define "quayside.container.extraArgs" -}}
{{- range . }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "quayside.container.rest" -}}
{{- with .resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .startupProbe }}
startupProbe:
  {{- toYaml . | nindent 2 }}
{{- end }}
livenessProbe:
  {{- include "quayside.over" (list (dict "httpGet" (dict "path" "/healthz" "port" "admin") "periodSeconds" 10 "timeoutSeconds" 3 "failureThreshold" 3) .livenessProbe) | nindent 2 }}
readinessProbe:
  {{- include "quayside.over" (list (dict "httpGet" (dict "path" "/readyz" "port" "admin") "periodSeconds" 2 "timeoutSeconds" 2 "failureThreshold" 2) .readinessProbe) | nindent 2 }}
{{- end }}
