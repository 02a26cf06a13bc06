{{- /* Metadata of a component's pods: no version, so that a new chart with the same image restarts nothing. */}}
{{- define "quayside.pod.metadata" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
labels:
  {{- merge (include "quayside.selector" . | fromYaml) ($own.podLabels | default dict) $root.Values.commonLabels | toYaml | nindent 2 }}
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
- --admin-auth={{ $root.Values.adminAuth }}
{{- if include "quayside.adminTLS" $root }}
- --admin-tls-cert-file=/etc/quayside/admin/tls.crt
- --admin-tls-key-file=/etc/quayside/admin/tls.key
{{- end }}
- --log-level={{ $root.Values.log.level }}
- --log-format={{ $root.Values.log.format }}
{{- end }}

{{- /* The flag of who makes objects at run time. */}}
{{- define "quayside.container.ownerArgs" -}}
{{- if .Values.rbac.create }}
- --owner={{ include "quayside.owner" . }}
{{- end }}
{{- end }}

{{- /* Which namespaces count, on which the proxies and the controller must agree. */}}
{{- define "quayside.container.watchArgs" -}}
{{- if and .Values.proxy.watchNamespace .Values.proxy.watchNamespaceSelector }}
{{- fail "proxy.watchNamespace and proxy.watchNamespaceSelector exclude each other: give one of them" }}
{{- end }}
{{- with .Values.proxy.watchNamespace }}
- --watch-namespace={{ . }}
{{- end }}
{{- with .Values.proxy.watchNamespaceSelector }}
- {{ printf "--watch-namespace-selector=%s" . | quote }}
{{- end }}
{{- end }}

{{- /* Flags of a component that works with what it knew before while the API server is away. */}}
{{- define "quayside.container.lastKnownArgs" -}}
{{- if .Values.lastKnown.enabled }}
- --last-known=/run/quayside
- --last-known-max-age={{ .Values.lastKnown.maxAge }}
{{- end }}
{{- end }}

{{- /* The flag that names what runs a component, to which quayside.rules.workload gives the right. */}}
{{- define "quayside.container.workloadArgs" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.rbac.create }}
- --workload={{ index . 2 }}/{{ include "quayside.namespace" (list $root (index . 1)) }}/{{ include "quayside.fullname" $root }}-{{ index . 1 }}
{{- end }}
{{- end }}

{{- /* Further flags and environment of a component, its resources and probes. */}}
{{- define "quayside.container.extraArgs" -}}
{{- range . }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- /* A probe of the values over ours, which asks the admin port unless they probe otherwise: whoever asks that need not know what it speaks. Call with (list default values scheme). */}}
{{- define "quayside.probe" -}}
{{- $probe := include "quayside.over" (list (index . 0) (index . 1)) | fromYaml -}}
{{- if pick $probe "exec" "tcpSocket" "grpc" }}
{{- $probe = omit $probe "httpGet" }}
{{- end }}
{{- with get $probe "httpGet" }}
{{- if and (eq (toString .port) "admin") (not (hasKey . "scheme")) }}
{{- $_ := set . "scheme" (index $ 2) }}
{{- end }}
{{- end }}
{{- toYaml $probe }}
{{- end }}

{{- define "quayside.container.rest" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
{{- $scheme := eq $root.Values.adminAuth "Token" | ternary "HTTPS" "HTTP" -}}
{{- with $own.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.startupProbe }}
startupProbe:
  {{- include "quayside.probe" (list (dict "httpGet" (dict "path" "/healthz" "port" "admin")) . $scheme) | nindent 2 }}
{{- end }}
livenessProbe:
  {{- include "quayside.probe" (list (dict "httpGet" (dict "path" "/healthz" "port" "admin") "periodSeconds" 10 "timeoutSeconds" 3 "failureThreshold" 3) $own.livenessProbe $scheme) | nindent 2 }}
readinessProbe:
  {{- include "quayside.probe" (list (dict "httpGet" (dict "path" "/readyz" "port" "admin") "periodSeconds" 2 "timeoutSeconds" 2 "failureThreshold" 2) $own.readinessProbe $scheme) | nindent 2 }}
{{- end }}

{{- /* Not empty where the admin ports have a certificate that somebody gave them. */}}
{{- define "quayside.adminTLS" -}}
{{- if eq .Values.adminAuth "Token" }}{{ .Values.adminTLS.existingSecret }}{{ end -}}
{{- end }}

{{- /* What the files of request bodies may hold; empty: there are none. */}}
{{- define "quayside.bodyFiles" -}}
{{- $size := .Values.proxy.bodyFiles.size -}}
{{- /* Helm reads numbers as floats, and would write 1e+09. */ -}}
{{- with kindIs "string" $size | ternary $size (int64 $size) | toString }}{{ if ne . "0" }}{{ . }}{{ end }}{{ end }}
{{- end }}

{{- /* Volumes of a component and their mounts: those of the chart that are there, and those of the values. */}}
{{- define "quayside.container.volumeMounts" -}}
{{- $root := index . 0 -}}
{{- $mounts := list }}
{{- if eq (index . 1) "speaker" }}
{{- $mounts = append $mounts (dict "name" "members" "mountPath" "/etc/quayside/members" "readOnly" true) }}
{{- end }}
{{- if include "quayside.adminTLS" $root }}
{{- $mounts = append $mounts (dict "name" "admin-tls" "mountPath" "/etc/quayside/admin" "readOnly" true) }}
{{- end }}
{{- if and (eq (index . 1) "proxy") (include "quayside.bodyFiles" $root) }}
{{- $mounts = append $mounts (dict "name" "bodies" "mountPath" "/var/lib/quayside") }}
{{- end }}
{{- if and (eq (index . 1) "proxy") $root.Values.proxy.modsecurity }}
{{- /* The firewall insists on a folder for temporary files, though it writes none. */}}
{{- $mounts = append $mounts (dict "name" "firewall" "mountPath" "/tmp") }}
{{- end }}
{{- if and (eq (index . 1) "proxy") $root.Values.proxy.geoip.editions $root.Values.proxy.geoip.volume }}
{{- $mounts = append $mounts (dict "name" "geoip" "mountPath" $root.Values.proxy.geoip.dir "readOnly" true) }}
{{- end }}
{{- if and $root.Values.lastKnown.enabled (has (index . 1) (list "speaker" "proxy")) }}
{{- $mounts = append $mounts (dict "name" "last-known" "mountPath" "/run/quayside") }}
{{- end }}
{{- with concat $mounts (index $root.Values (index . 1)).extraVolumeMounts }}
volumeMounts:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- define "quayside.pod.volumes" -}}
{{- $root := index . 0 -}}
{{- $volumes := list }}
{{- if eq (index . 1) "speaker" }}
{{- /* The controller makes the Secret; a speaker that is first waits for the file. */}}
{{- $volumes = append $volumes (dict "name" "members" "secret" (dict "secretName" (include "quayside.membersSecret" $root) "defaultMode" 0400 "optional" true)) }}
{{- end }}
{{- with include "quayside.adminTLS" $root }}
{{- $volumes = append $volumes (dict "name" "admin-tls" "secret" (dict "secretName" .)) }}
{{- end }}
{{- if eq (index . 1) "proxy" }}
{{- with include "quayside.bodyFiles" $root }}
{{- $volumes = append $volumes (merge (dict "name" "bodies") ($root.Values.proxy.bodyFiles.volume | default (dict "emptyDir" (dict "sizeLimit" .)))) }}
{{- end }}
{{- end }}
{{- if and (eq (index . 1) "proxy") $root.Values.proxy.modsecurity }}
{{- $volumes = append $volumes (dict "name" "firewall" "emptyDir" (dict "medium" "Memory" "sizeLimit" "1Mi")) }}
{{- end }}
{{- if and (eq (index . 1) "proxy") $root.Values.proxy.geoip.editions $root.Values.proxy.geoip.volume }}
{{- $volumes = append $volumes (merge (dict "name" "geoip") $root.Values.proxy.geoip.volume) }}
{{- end }}
{{- if and $root.Values.lastKnown.enabled (has (index . 1) (list "speaker" "proxy")) }}
{{- /* Secrets are in it, so it is memory, as their own volumes are. */}}
{{- $volumes = append $volumes (dict "name" "last-known" "emptyDir" (dict "medium" "Memory" "sizeLimit" $root.Values.lastKnown.size)) }}
{{- end }}
{{- with concat $volumes (index $root.Values (index . 1)).extraVolumes }}
volumes:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
