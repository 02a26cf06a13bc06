package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/geoip"
)

// chartRule takes one value of a chart, with all that is below it.
type chartRule func(c *ChartValues, at string, value any)

// ingressNginxRules are the values of ingress-nginx's chart, by their paths.
func ingressNginxRules() map[string]chartRule {
	rules := map[string]chartRule{
		"commonLabels":                                             same("commonLabels"),
		"controller.kind":                                          kindOfProxy,
		"controller.config":                                        proxyConfig,
		"controller.hostNetwork":                                   hostNetwork,
		"controller.hostPort":                                      hostPorts,
		"controller.publishService.enabled":                        said("an Ingress names the addresses of the proxy's Service, or of the nodes with proxies that have no Service; controller.publishAddresses names others"),
		"controller.publishService.pathOverride":                   same("controller.publishService"),
		"controller.reportNodeInternalIp":                          said("nodes are named by their internal addresses"),
		"controller.autoscaling.targetMemoryUtilizationPercentage": said("proxy.autoscaling.metrics takes any metric"),
		"controller.service.loadBalancerIP":                        oneAddress("proxy.service.loadBalancerIPs"),
		"controller.service":                                       theirServices,
		"controller.service.internal.loadBalancerIP":               oneAddress("proxy.internalService.loadBalancerIPs"),
		"controller.ingressClassResource.default":                  whereTrue("ingressClass.default", true),
		"controller.ingressClassResource.name":                     className,
		"controller.ingressClass":                                  className,
		"controller.watchIngressWithoutClass":                      whereTrue("ingressClass.default", true),
		"controller.scope":                                         scope,
		"controller.maxUnavailable":                                same("proxy.podDisruptionBudget.maxUnavailable"),
		"controller.minAvailable":                                  said("proxy.podDisruptionBudget.maxUnavailable says the same the other way round"),
		"controller.addHeaders":                                    headersOf("add-headers"),
		"controller.proxySetHeaders":                               headersOf("proxy-set-headers"),
		"controller.extraArgs":                                     flags,
		"controller.extraArgs.default-ssl-certificate":             same("proxy.defaultSSLCertificate"),
		"controller.extraArgs.default-backend-service":             same("proxy.defaultBackendService"),
		"controller.extraArgs.watch-namespace":                     same("proxy.watchNamespace"),
		"controller.extraArgs.watch-namespace-selector":            same("proxy.watchNamespaceSelector"),
		"controller.extraArgs.publish-service":                     same("controller.publishService"),
		"controller.extraArgs.publish-status-address":              statusAddresses,
		"controller.extraArgs.disable-catch-all":                   whereTrue("ingressClass.allowCatchAll", false),
		"controller.extraArgs.disable-svc-external-name":           whereTrue("ingressClass.externalNames", false),
		"controller.extraArgs.http-port":                           listensAt("http"),
		"controller.extraArgs.https-port":                          listensAt("https"),
		"controller.extraArgs.ingress-class":                       className,
		"controller.extraArgs.enable-ssl-passthrough":              said("passthrough is on; ingressClass.sslPassthrough=false refuses it"),
		"controller.extraArgs.maxmind-edition-ids":                 namedEditions,
		"controller.maxmindLicenseKey":                             said("databases are not fetched here: put their files into proxy.geoip.volume, where MaxMind's geoipupdate keeps them up to date"),
		"controller.metrics.enabled":                               same("metrics.enabled"),
		"controller.metrics.serviceMonitor.enabled":                same("metrics.serviceMonitor.enabled"),
		"controller.metrics.serviceMonitor.scrapeInterval":         same("metrics.serviceMonitor.interval"),
		"controller.metrics.serviceMonitor.additionalLabels":       same("metrics.serviceMonitor.labels"),
		"controller.metrics.prometheusRule.enabled":                same("metrics.prometheusRule.enabled"),
		"controller.metrics.prometheusRule.additionalLabels":       same("metrics.prometheusRule.labels"),
		"controller.metrics.prometheusRule.rules":                  said("rules about metrics of ingress-nginx go on with metrics.ingressNginx=true; those of ours come with metrics.prometheusRule.enabled"),
		"defaultBackend":                                           said("proxy.defaultBackendService names a Service that answers; its Deployment is yours"),
		"tcp":                                                      said("ports become Services of type LoadBalancer: quayside migrate -f, with the ConfigMaps tcp-services and udp-services and the Services that they lead to"),
		"udp":                                                      said("see tcp"),
	}
	for theirs, ours := range map[string]string{"replicaCount": "replicas", "extraEnvs": "extraEnv", "extraInitContainers": "initContainers", "terminationGracePeriodSeconds": "gracePeriodSeconds"} {
		rules["controller."+theirs] = same("proxy." + ours)
	}
	for _, key := range []string{"affinity", "topologySpreadConstraints"} {
		rules["controller."+key] = placed("proxy."+key, IngressNginxChart)
	}
	for _, key := range []string{"resources", "nodeSelector", "tolerations", "priorityClassName", "updateStrategy", "podAnnotations", "podLabels",
		"minReadySeconds", "dnsPolicy", "dnsConfig", "extraVolumes", "extraVolumeMounts", "extraContainers",
		"autoscaling.enabled", "autoscaling.minReplicas", "autoscaling.maxReplicas", "autoscaling.targetCPUUtilizationPercentage", "autoscaling.behavior"} {
		rules["controller."+key] = same("proxy." + key)
	}
	for _, key := range []string{"type", "allocateLoadBalancerNodePorts", "annotations", "labels", "externalTrafficPolicy", "externalIPs", "loadBalancerSourceRanges", "loadBalancerClass",
		"ipFamilyPolicy", "ipFamilies", "ports.http", "ports.https", "nodePorts.http", "nodePorts.https"} {
		rules["controller.service."+key] = same("proxy.service." + key)
		rules["controller.service.internal."+key] = same("proxy.internalService." + key)
	}
	for _, key := range []string{"image", "admissionWebhooks", "allowSnippetAnnotations", "enableAnnotationValidations", "opentelemetry", "containerName", "containerPort", "healthCheckPath",
		"healthCheckHost", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "name", "electionID", "electionTTL", "ingressClassByName", "ingressClassResource.enabled",
		"ingressClassResource.controllerValue", "podSecurityContext", "containerSecurityContext", "enableMimalloc", "shareProcessNamespace"} {
		rules["controller."+key] = ofTheProcess
	}
	for _, key := range []string{"rbac", "serviceAccount", "imagePullSecrets", "revisionHistoryLimit", "fullnameOverride", "nameOverride", "namespaceOverride", "portNamePrefix"} {
		rules[key] = ofTheProcess
	}
	return rules
}

// same is for a value that is the same under another name.
func same(ours string) chartRule {
	return func(c *ChartValues, _ string, value any) { c.set(ours, value) }
}

// said is for a value of which there is something to know.
func said(why string) chartRule {
	return func(c *ChartValues, at string, _ any) { c.note("%s: %s", at, why) }
}

func ofTheProcess(c *ChartValues, at string, _ any) { c.process = append(c.process, at) }

func kindOfProxy(c *ChartValues, at string, value any) {
	if value != "Deployment" && value != "DaemonSet" {
		c.note("%s: proxy.kind is Deployment or DaemonSet", at)
		return
	}
	c.set("proxy.kind", value)
}

// namedEditions takes the list of databases that say where clients are.
func namedEditions(c *ChartValues, at string, value any) {
	text, ok := value.(string)
	if !ok {
		c.note("%s is no list of names", at)
		return
	}
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if _, err := geoip.New(list); err != nil {
		c.note("%s: %v", at, err)
		return
	}
	c.editions(list)
}

// editions has proxies know databases.
func (c *ChartValues) editions(list []string) {
	c.set("proxy.geoip.editions", list)
	c.note("proxies serve once they have the files of %s: see proxy.geoip.volume", strings.Join(list, " and "))
}

// proxyConfig takes the ConfigMap, whose values are text whatever YAML takes them for.
func proxyConfig(c *ChartValues, at string, value any) {
	theirs, ok := c.keys(at, value)
	if !ok {
		return
	}
	config := map[string]string{}
	for key, v := range theirs {
		switch v := v.(type) {
		case nil:
		case float64: // 63072000, and not 6.3072e+07
			config[key] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			config[key] = fmt.Sprint(v)
		}
	}
	globalAuth(c, config)
	for _, key := range slices.Sorted(maps.Keys(config)) {
		switch {
		case !strings.HasSuffix(key, "-snippet"):
		case len(problemsOf(map[string]string{key: config[key]})) == 0:
			c.note("proxy.config: %s is obeyed as it is", key)
		default:
			c.Notes = append(c.Notes, snippetNotes("proxy.config: "+key, config[key])...)
		}
	}
	c.set("proxy.config", config)
}

// globalAuth has keys of ours in the place of a global-auth-snippet that do the same.
func globalAuth(c *ChartValues, config map[string]string) {
	const global = "global-"
	r := replacement{key: global + "auth-snippet"}
	if !r.asks(config[r.key], config[global+"auth-signin"]) {
		return
	}
	delete(config, r.key)
	for i := range r.options {
		o := &r.options[i]
		o.Key = global + o.Key
		config[o.Key] = o.Value
	}
	c.note("proxy.config: %s", r.note())
}

// flags takes those of the command line, which are true where they have no value.
func flags(c *ChartValues, at string, value any) {
	theirs, ok := c.keys(at, value)
	if !ok {
		return
	}
	theirs = maps.Clone(theirs)
	for name, v := range theirs {
		if isNothing(v) || v == "true" {
			theirs[name] = true
		}
	}
	c.read(at, theirs)
}

// listensAt is for the port at which the process listens.
func listensAt(name string) chartRule {
	return func(c *ChartValues, at string, value any) {
		port, err := strconv.ParseUint(fmt.Sprint(value), 10, 16)
		if err != nil || port == 0 {
			c.note("%s is no port", at)
			return
		}
		c.set("proxy.ports."+name, port)
	}
}

// placed is for what says where pods go, maybe by the labels of theirs.
func placed(ours, theirs string) chartRule {
	return func(c *ChartValues, at string, value any) {
		c.set(ours, value)
		if text, err := json.Marshal(value); err == nil && strings.Contains(string(text), theirs) {
			c.note("%s names %s, maybe by labels of its pods: ours have app.kubernetes.io/name=quayside, and a component of their own", ours, theirs)
		}
	}
}

// whereTrue is for a switch of theirs that says something of ours where it is on.
func whereTrue(ours string, is bool) chartRule {
	return func(c *ChartValues, _ string, value any) {
		if value == true {
			c.set(ours, is)
		}
	}
}

// scope is nothing unless it is switched on.
func scope(c *ChartValues, at string, value any) {
	theirs, _ := value.(map[string]any)
	namespace, selector := theirs["namespace"], theirs["namespaceSelector"]
	switch {
	case theirs["enabled"] != true:
		if !isNothing(selector) { // which it heeds where scope is off
			c.set("proxy.watchNamespaceSelector", selector)
		}
	case namespace != nil && namespace != "":
		c.set("proxy.watchNamespace", namespace)
	default:
		c.note("%s: without a namespace it is that of the release; proxy.watchNamespace names it", at)
	}
}

func hostNetwork(c *ChartValues, _ string, value any) {
	if value == true {
		c.set("proxy.hostNetwork.enabled", true)
		for name, port := range map[string]int{"http": 80, "https": 443} {
			if at := "proxy.ports." + name; c.get(at) == nil {
				c.set(at, port)
			}
		}
	}
}

func hostPorts(c *ChartValues, _ string, value any) {
	theirs, _ := value.(map[string]any)
	if theirs["enabled"] != true {
		return
	}
	ports := map[string]any{"http": 80, "https": 443}
	if own, ok := theirs["ports"].(map[string]any); ok {
		maps.Copy(ports, own)
	}
	c.set("proxy.hostPorts", ports)
}

// theirServices takes which Services there are, and what the internal one has of the other.
func theirServices(c *ChartValues, at string, value any) {
	theirs, ok := c.keys(at, value)
	if !ok {
		return
	}
	rest := maps.Clone(theirs)
	for _, name := range []string{"enabled", "external", "internal", "enableHttp", "enableHttps"} {
		delete(rest, name)
	}
	external, _ := theirs["external"].(map[string]any)
	if theirs["enabled"] == false || external["enabled"] == false {
		c.set("proxy.service.enabled", false)
	}
	services := []string{"service"}
	internal, _ := theirs["internal"].(map[string]any)
	switch {
	case theirs["enabled"] == false || internal["enabled"] != true:
	case isNothing(internal["annotations"]):
		c.note("%s.internal has no annotations, without which ingress-nginx makes no Service of it; proxy.internalService.enabled does", at)
	default:
		services = append(services, "internalService")
		c.set("proxy.internalService.enabled", true)
		c.set("proxy.internalService.type", "LoadBalancer")
		own := map[string]any{}
		for _, name := range []string{"type", "ports", "labels"} {
			own[name] = theirs[name]
		}
		c.read(at+".internal", own)
		own = maps.Clone(internal)
		delete(own, "enabled")
		rest["internal"] = own
	}
	c.read(at, rest)
	for _, service := range services {
		if theirs["enableHttp"] == false {
			c.set("proxy."+service+".ports.http", nil)
		}
		if theirs["enableHttps"] == false {
			c.set("proxy."+service+".ports.https", nil)
		}
	}
}

func oneAddress(ours string) chartRule {
	return func(c *ChartValues, _ string, value any) {
		if value != "" {
			c.set(ours, []any{value})
		}
	}
}

func className(c *ChartValues, at string, value any) {
	c.note("%s: Ingresses of class %v move by quayside migrate --ingress-class %v, or stay as they are with ingressClass.adoptControllers, which takes the controller of its IngressClass; "+
		"its chart takes the IngressClass away when it is uninstalled, so name class %v in ingressClass.adoptNames before", at, value, value, value)
}

func headersOf(key string) chartRule {
	return func(c *ChartValues, at string, _ any) {
		c.note("%s: they go into a ConfigMap of yours, which %s in proxy.config names as NAMESPACE/NAME", at, key)
	}
}

func statusAddresses(c *ChartValues, _ string, value any) {
	var list []any
	for address := range strings.SplitSeq(fmt.Sprint(value), ",") {
		list = append(list, strings.TrimSpace(address))
	}
	c.set("controller.publishAddresses", list)
}
