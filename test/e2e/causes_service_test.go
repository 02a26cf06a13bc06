package e2e

// poolCauses are there while the cluster has no pool.
func poolCauses() []broken {
	return []broken{
		{name: "no-pool", objects: askingFor("$ROW", "", ""), asks: "service/$NS/$ROW", link: "address", on: "$NS/$ROW",
			says: "there is no IPAddressPool yet", next: "create one"},
		{name: "proxy-waits", objects: ruleFor("$ROW", "", "/", "gone:80"), asks: "http://$ROW.example.com/", link: "address", on: "Ingress $NS/$ROW",
			says: "Service quayside-proxy/quayside-proxy of the proxies has none: NoPool: there is no IPAddressPool yet", next: "create one"},
	}
}

// addressCauses leave a Service without an address.
func addressCauses() []broken {
	rows := []broken{
		{name: "pool-exhausted", objects: askingFor("$ROW", "address-pool: full", ""),
			says: "every IPv4 address of pool full is in use", next: "add addresses to a pool"},
		{name: "pool-draining", objects: askingFor("$ROW", "address-pool: draining", ""),
			says: "pool draining gives no new addresses", next: "see its spec.drain"},
		{name: "pool-missing", objects: askingFor("$ROW", "address-pool: ghost", ""),
			says: `it asks for pool "ghost", which does not exist`, next: "ask for one that does, or create it"},
		{name: "pool-of-others", objects: askingFor("$ROW", "address-pool: elsewhere", ""),
			says: "pool elsewhere does not serve this Service", next: "see its spec.serviceAllocation"},
		{name: "outside-pools", objects: askingFor("$ROW", "loadBalancerIPs: 10.77.0.150", ""),
			says: "10.77.0.150 is in no pool", next: "ask for another or add it to an IPAddressPool"},
		{name: "held-by-another", objects: askingFor("$ROW", "loadBalancerIPs: 10.77.0.190", ""),
			says: "10.77.0.190 is held by $NS/holder, which does not share it", next: "ask for another"},
		{name: "another-sharing-key", objects: askingFor("$ROW", "loadBalancerIPs: 10.77.0.193, metallb.io/allow-shared-ip: theirs", ""),
			says: `10.77.0.193 is held by $NS/sharer, which shares it under another key, "ours"`, next: "give both one quayside.io/allow-shared-ip"},
		{name: "family-missing", objects: askingFor("$ROW", "address-pool: six", "  ipFamilies: [IPv4]\n"),
			says: "pool six has no IPv4 addresses", next: "add some to spec.addresses"},
		{name: "both-families", objects: askingFor("$ROW", "address-pool: six", "  ipFamilyPolicy: RequireDualStack\n"),
			says: "it requires both families from one pool, and pool six has not both", next: "add addresses of the other family"},
		{name: "address-of-a-node", objects: askingFor("$ROW", "loadBalancerIPs: $NODE1", ""),
			says: "$NODE1 is the own address of node node1", next: "ask for another"},
	}
	for i := range rows {
		rows[i].asks, rows[i].link, rows[i].on = "service/$NS/$ROW", "address", "$NS/$ROW"
	}
	return rows
}

// announcementCauses leave an address without anybody who answers for it.
func announcementCauses() []broken {
	rows := []broken{
		{name: "pool-unadvertised", objects: askingFor("$ROW", "address-pool: dark", ""), on: "pool dark",
			says: "no L2Advertisement and no BGPAdvertisement selects this pool", next: "name the pool in one"},
		{name: "local-without-ready-pod", objects: localFor("idle"), on: "$NS/$ROW",
			says: "no ready endpoint of $NS/$ROW, whose externalTrafficPolicy is Local", next: "what helps: a ready pod on a node that may announce it, or externalTrafficPolicy: Cluster"},
		{name: "node-excluded", objects: localFor("third"), on: "node3",
			says: "node3: it is labelled " + excludeLabel, next: "a node without that label"},
		{name: "speaker-dead", objects: localFor("second"), on: "node node2", make: killsSpeaker, mend: func(e edge) { e.Quayside().Speaker(e.Node(2)).Start() },
			says: "its speaker is not alive any more", next: "start its pod"},
		{name: "router-unreachable", objects: askingFor("$ROW", "address-pool: far", ""), on: "BGPPeer unplugged",
			says: "has no session with BGPPeer unplugged", next: "see that the node reaches the router"},
	}
	for i := range rows {
		rows[i].asks, rows[i].link = "service/$NS/$ROW", "announced"
	}
	return append(rows,
		broken{name: "pools-overlap", on: "IPAddressPool overlapping",
			says: "10.77.0.183-10.77.0.185 belongs to pool over, which comes first", next: "remove it from one of them"},
		broken{name: "node-in-pool", on: "IPAddressPool of-nodes",
			says: "it contains addresses of nodes or gateways ($NODE1 of node1)", next: "take them out of spec.addresses"},
	)
}

func localFor(app string) string {
	return askingFor("$ROW", "", "  externalTrafficPolicy: Local\n  selector: {app: "+app+"}\n")
}

// killsSpeaker waits until the second node announces the row's address, and kills its
// speaker, whose word then stands.
func killsSpeaker(e edge, name string) {
	e.claimedBy(e.serviceAddress(name), e.Node(2))
	e.Quayside().Speaker(e.Node(2)).Kill()
}

// endpointCauses are answered for and lead to no pod.
func endpointCauses() []broken {
	rows := []broken{
		{name: "selector-finds-nothing", objects: askingFor("$ROW", "", "  selector: {app: nobody}\n"),
			says: "no pod matches the selector app=nobody", next: "start one, or correct the selector"},
		{name: "pods-not-ready", objects: askingFor("$ROW", "", "  selector: {app: idle}\n"),
			says: "no endpoint is ready (1 are not)", next: "see why the readiness probes of its pods fail"},
		{name: "target-port-unnamed", objects: askingFor("$ROW", "", "  ports: [{name: http, port: 80, targetPort: web}]\n"),
			says: "none offers this port", next: "name a port of the pods in targetPort"},
	}
	for i := range rows {
		rows[i].asks, rows[i].link, rows[i].on = "service/$NS/$ROW", "endpoints", "$NS/$ROW"
	}
	return append(rows,
		broken{name: "foreign-class", objects: askingFor("$ROW", "", "  loadBalancerClass: example.com/other\n"), asks: "service/$NS/$ROW", link: "address", on: "$NS/$ROW",
			says: "its loadBalancerClass example.com/other is another controller's", next: "for Quayside make the Service anew with quayside.io/lb, or without a class"},
	)
}
