package migrate

import "slices"

// metallbRules are the values of MetalLB's chart, by their paths.
func metallbRules() map[string]chartRule {
	rules := map[string]chartRule{
		"loadBalancerClass":                                  loadBalancerClass,
		"controller.logLevel":                                logLevel,
		"controller.strategy":                                same("controller.updateStrategy"),
		"controller.labels":                                  same("controller.podLabels"),
		"speaker.logLevel":                                   logLevel,
		"speaker.enabled":                                    same("speaker.enabled"),
		"speaker.ignoreExcludeLB":                            same("speaker.ignoreExcludeLB"),
		"speaker.labels":                                     same("speaker.podLabels"),
		"speaker.tolerateMaster":                             tolerateMaster,
		"speaker.memberlist.enabled":                         said("speakers always gossip: addresses move by it"),
		"speaker.memberlist.mlBindPort":                      said("speaker.members.port is 7946 by default, too; it has to be another while both run"),
		"speaker.memberlist.mlBindAddrOverride":              said("speakers gossip on the address of their node"),
		"speaker.excludeInterfaces":                          said("an L2Advertisement names the interfaces that announce"),
		"speaker.frr":                                        said("BGP and BFD are of the speaker itself"),
		"frrk8s":                                             said("BGP and BFD are of the speaker itself"),
		"prometheus.serviceMonitor.enabled":                  same("metrics.serviceMonitor.enabled"),
		"prometheus.podMonitor.enabled":                      same("metrics.podMonitor.enabled"),
		"prometheus.podMonitor.additionalLabels":             same("metrics.podMonitor.labels"),
		"prometheus.prometheusRule.enabled":                  same("metrics.prometheusRule.enabled"),
		"prometheus.prometheusRule.additionalLabels":         same("metrics.prometheusRule.labels"),
		"prometheus.prometheusRule.staleConfig":              said("metrics.prometheusRule has alerts of its own, see docs/metrics.md"),
		"prometheus.prometheusRule.configNotLoaded":          said("metrics.prometheusRule has alerts of its own, see docs/metrics.md"),
		"prometheus.prometheusRule.addressPoolUsage":         said("metrics.prometheusRule.poolUsagePercent says from when"),
		"prometheus.prometheusRule.bgpSessionDown":           said("metrics.prometheusRule has alerts of its own, see docs/metrics.md"),
		"prometheus.prometheusRule.extraAlerts":              same("metrics.prometheusRule.additionalRules"),
		"prometheus.serviceAccount":                          said("metrics.readers names who may read them"),
		"prometheus.namespace":                               said("metrics.readers names who may read them"),
		"prometheus.serviceMonitor.speaker.tlsConfig":        said("metrics.serviceMonitor.tlsConfig is for all components"),
		"prometheus.serviceMonitor.metricRelabelings":        same("metrics.serviceMonitor.metricRelabelings"),
		"prometheus.serviceMonitor.relabelings":              same("metrics.serviceMonitor.relabelings"),
		"prometheus.serviceMonitor.interval":                 same("metrics.serviceMonitor.interval"),
		"prometheus.serviceMonitor.speaker.additionalLabels": same("metrics.serviceMonitor.labels"),
		"configInline":                                       said("quayside migrate reads the ConfigMap of old MetalLB"),
	}
	rules["controller.tolerations"], rules["speaker.tolerations"] = same("controller.tolerations"), speakerTolerations
	for _, component := range []string{"controller", "speaker"} {
		rules[component+".affinity"] = placed(component+".affinity", MetalLBChart)
		for _, key := range []string{"resources", "nodeSelector", "priorityClassName", "podAnnotations", "updateStrategy"} {
			rules[component+"."+key] = same(component + "." + key)
		}
		for _, key := range []string{"image", "securityContext", "serviceAccount", "livenessProbe", "readinessProbe", "startupProbe", "runtimeClassName", "extraContainers", "enabled", "webhookMode", "reloader", "frrMetrics"} {
			if at := component + "." + key; rules[at] == nil {
				rules[at] = ofTheProcess
			}
		}
	}
	for _, key := range []string{"rbac", "crds", "imagePullSecrets", "fullnameOverride", "nameOverride", "prometheus.rbacPrometheus", "prometheus.metricsPort", "prometheus.scrapeAnnotations",
		"prometheus.rbacProxy", "prometheus.controllerMetricsTLSSecret", "prometheus.speakerMetricsTLSSecret", "prometheus.secureMetricsPort", "speaker.memberlist.mlSecretKeyPath", "speaker.secretName"} {
		rules[key] = ofTheProcess
	}
	return rules
}

// loadBalancerClass is for MetalLB's, which then leaves Services without one alone.
func loadBalancerClass(c *ChartValues, at string, value any) {
	c.set("loadBalancer.class", value)
	c.set("loadBalancer.default", false)
	c.note("%s: while MetalLB runs as well, both would take Services of class %v; name another until it is gone", at, value)
}

func logLevel(c *ChartValues, at string, value any) {
	switch value {
	case "debug", "info", "warn", "error":
		c.set("log.level", value)
	case "all":
		c.set("log.level", "debug")
	case "none":
		c.set("log.level", "error")
	default:
		c.note("%s: log.level is debug, info, warn or error", at)
	}
}

// tolerateMaster is true unless it is said: so do speakers of ours, which no toleration that is
// named may take that from.
func tolerateMaster(c *ChartValues, _ string, value any) {
	if value == false {
		c.set("speaker.tolerations", []any{})
	}
}

// speakerTolerations comes after tolerateMaster, in the order of names.
func speakerTolerations(c *ChartValues, at string, value any) {
	named, ok := value.([]any)
	if !ok {
		c.note("%s is no list", at)
		return
	}
	if c.get("speaker.tolerations") == nil {
		named = slices.Insert(named, 0, any(map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}))
	}
	c.set("speaker.tolerations", named)
}
