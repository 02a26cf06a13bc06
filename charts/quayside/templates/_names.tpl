{{- /* The first part of every name. */}}
{{- define "quayside.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- /*
The ClusterRole that everything made at run time is deleted with: an object of the
release for which every cluster has a right to ask, and that no upgrade makes anew.
*/}}
{{- define "quayside.owner" -}}
{{- include "quayside.fullname" . }}-controller
{{- end }}

{{- /* Labels that select a component's pods; they never change. Call with (list $ "speaker"). */}}
{{- define "quayside.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Values.nameOverride | default $root.Chart.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /*
Labels of an object. Call with (list $ "speaker"), or (list $ "speaker" labels) for one that has
labels in the values, too. What selects pods and what is looked for stays as it is, whatever the
values say: a name may stand here once.
*/}}
{{- define "quayside.labels" -}}
{{- $root := index . 0 -}}
{{- $own := include "quayside.selector" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "quayside" -}}
{{- $_ := set $own "app.kubernetes.io/version" (toString $root.Chart.AppVersion) -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $given := gt (len .) 2 | ternary (last .) (dict) | default dict -}}
{{- toYaml (merge $own $given $root.Values.commonLabels) }}
{{- end }}

{{- /* Name of a component's ServiceAccount. */}}
{{- define "quayside.serviceAccountName" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values (index . 1) -}}
{{- $own.serviceAccount.name | default (printf "%s-%s" (include "quayside.fullname" $root) (index . 1)) -}}
{{- end }}

{{- /* Namespace of a component: the proxy, which faces strangers, lives apart from the gossip key. Call with (list $ "proxy"). */}}
{{- define "quayside.namespace" -}}
{{- $root := index . 0 -}}
{{- if ne (index . 1) "proxy" -}}
{{- $root.Release.Namespace -}}
{{- else -}}
{{- $own := $root.Values.proxy.namespace -}}
{{- if not $own.name -}}
{{- $_ := set $own "name" (include "quayside.proxyNamespace" $root) -}}{{- /* the API server is asked once */ -}}
{{- end -}}
{{- $own.name -}}
{{- end -}}
{{- end }}

{{- /*
Where the proxy lives if nobody says it: in a namespace of its own. An upgrade of a
release that has it beside the rest leaves it there, for a Service in another namespace
is another Service, with another address.
*/}}
{{- define "quayside.proxyNamespace" -}}
{{- $name := printf "%s-proxy" (include "quayside.fullname" .) -}}
{{- $there := .Release.Namespace -}}
{{- if and .Release.IsUpgrade (or (lookup "apps/v1" "Deployment" $there $name) (lookup "apps/v1" "DaemonSet" $there $name)) -}}
{{- $there -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{- define "quayside.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* The Secret with the token that monitors show. */}}
{{- define "quayside.scrapeToken" -}}
{{- .Values.metrics.tokenSecret | default (printf "%s-metrics-reader" (include "quayside.fullname" .)) -}}
{{- end }}

{{- /* The controller knows its Secret and its Lease by these names, whatever the release is called. */}}
{{- define "quayside.membersSecret" -}}
{{- .Values.speaker.members.existingSecret | default "quayside-members" -}}
{{- end }}

{{- /* NAMESPACE/NAME of the Service that Ingress statuses are copied from; empty if none is. */}}
{{- define "quayside.publishService" -}}
{{- if .Values.controller.publishService -}}
{{ .Values.controller.publishService }}
{{- else if and .Values.proxy.enabled .Values.proxy.service.enabled (not .Values.controller.publishAddresses) (not (include "quayside.publishHosts" .)) -}}
{{ include "quayside.namespace" (list . "proxy") }}/{{ include "quayside.fullname" . }}-proxy
{{- end -}}
{{- end }}

{{- /*
NAMESPACE/NAME of the Service by whose endpoints the nodes are known that Ingress statuses
name; empty if the proxies are not reached at their nodes, or have better addresses.
*/}}
{{- define "quayside.publishHosts" -}}
{{- $proxy := .Values.proxy -}}
{{- $there := and $proxy.enabled (or $proxy.hostNetwork.enabled $proxy.hostPorts) -}}
{{- $better := and $proxy.service.enabled (or (eq $proxy.service.type "LoadBalancer") $proxy.service.externalIPs) -}}
{{- if not (or (not $there) $better .Values.controller.publishService .Values.controller.publishAddresses) -}}
{{ include "quayside.namespace" (list . "proxy") }}/{{ include "quayside.fullname" . }}-proxy-hosts
{{- end -}}
{{- end }}
{{- /* Fails where a pod would listen twice at one port, or two pods on the network of a node. Call with (list root component). */}}
{{- define "quayside.distinctPorts" -}}
{{- $root := index . 0 -}}
{{- $speaker := dict "speaker.adminPort" $root.Values.speaker.adminPort "speaker.members.port" $root.Values.speaker.members.port -}}
{{- with regexFind "[0-9]+$" $root.Values.speaker.bgp.listen }}
{{- $_ := set $speaker "speaker.bgp.listen" . }}
{{- end }}
{{- $ports := $speaker -}}
{{- if eq (index . 1) "proxy" }}
{{- $proxy := $root.Values.proxy }}
{{- $ports = dict "proxy.adminPort" $proxy.adminPort "proxy.ports.http" $proxy.ports.http "proxy.ports.https" $proxy.ports.https }}
{{- if and $proxy.hostNetwork.enabled $root.Values.speaker.enabled }}
{{- $ports = merge $ports $speaker }}
{{- end }}
{{- end }}
{{- $who := dict }}
{{- range $name, $port := $ports }}
{{- with get $who (int $port | toString) }}
{{- fail (printf "%s and %s are both %d: one of them could not listen there" . $name (int $port)) }}
{{- end }}
{{- $_ := set $who (int $port | toString) $name }}
{{- end }}
{{- end }}

{{- /* NAMESPACE/NAME of the ConfigMap with proxy-wide options, or nothing. */}}
{{- define "quayside.configMap" -}}
{{- if and .Values.proxy.config .Values.proxy.configMap }}
{{- fail "proxy.config makes a ConfigMap, and proxy.configMap names another: set one of them" }}
{{- end }}
{{- if .Values.proxy.config }}
{{- printf "%s/%s-proxy-options" (include "quayside.namespace" (list . "proxy")) (include "quayside.fullname" .) }}
{{- else }}
{{- .Values.proxy.configMap }}
{{- end }}
{{- end }}

{{- /*
Refuses a second release in a namespace. By these fixed names it would find what is the
first one's: the Lease by which one controller leads, and the keys. Helm, which knows only
what it makes itself, says that a Service exists. What renders charts without asking the
cluster gets here unrefused; then the controller refuses to run.
*/}}
{{- define "quayside.alone" -}}
{{- $there := lookup "v1" "Service" .Release.Namespace "quayside-controller" | default dict -}}
{{- $first := dig "metadata" "annotations" "meta.helm.sh/release-name" (dig "metadata" "labels" "app.kubernetes.io/instance" "" $there) $there -}}
{{- if and (eq "quayside" (dig "metadata" "labels" "app.kubernetes.io/part-of" "" $there)) $first (ne $first .Release.Name) -}}
{{- fail (printf "release %s of Quayside is in namespace %s: a second one there would share its leader and its gossip key; install release %s in a namespace of its own, as the first lines of values.yaml say" $first .Release.Namespace .Release.Name) -}}
{{- end -}}
{{- end }}
