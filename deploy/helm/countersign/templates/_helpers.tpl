{{- define "countersign.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "countersign.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "countersign.labels" -}}
{{ include "countersign.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "countersign.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "countersign.secret" -}}
{{ .Values.secret.existing | default (include "countersign.name" .) }}
{{- end }}

{{- define "countersign.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "countersign.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* Read-only, without further privileges, not root. */ -}}
{{- define "countersign.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "countersign.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* Keys of the configuration as variables. Values other than strings are written as JSON, which the configuration reads. */ -}}
{{- define "countersign.config" -}}
{{- range $section, $keys := .Values.config }}
{{- range $key, $value := $keys }}
- name: COUNTERSIGN_{{ upper $section }}__{{ upper $key }}
  value: {{ ternary $value ($value | toJson) (kindIs "string" $value) | quote }}
{{- end }}
{{- end }}
{{- end }}
