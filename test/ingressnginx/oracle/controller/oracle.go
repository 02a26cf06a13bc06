//go:build oracle

// This file stands in ingress-nginx's internal/ingress/controller when the lab builds it with the
// tag oracle; see test/lab/ingressnginx.go.
package controller

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/eapache/channels"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientset "k8s.io/client-go/kubernetes"

	"k8s.io/ingress-nginx/internal/ingress/annotations/parser"
	"k8s.io/ingress-nginx/internal/ingress/controller/config"
	"k8s.io/ingress-nginx/internal/ingress/controller/ingressclass"
	"k8s.io/ingress-nginx/internal/ingress/controller/store"
	"k8s.io/ingress-nginx/internal/ingress/controller/template"
	"k8s.io/ingress-nginx/internal/ingress/metric"
	"k8s.io/ingress-nginx/internal/net/ssl"
	"k8s.io/ingress-nginx/internal/nginx"
	"k8s.io/ingress-nginx/pkg/apis/ingress"
	"k8s.io/ingress-nginx/pkg/tcpproxy"
)

// Oracle is what ingress-nginx makes of the objects that a client has.
type Oracle struct {
	controller *NGINXController
	plan       *ingress.Configuration
}

// OracleFlags are flags of ingress-nginx; names are NAMESPACE/NAME of an object.
type OracleFlags struct {
	ConfigMap             string
	DefaultBackendService string
	DefaultSSLCertificate string
	// ValidateAnnotations has values be looked at before they are taken, as versions since 1.12 do
	// unasked.
	ValidateAnnotations bool
	Passthrough         bool // its own connections of TLS are handed on
}

// NewOracle reads the objects. The nginx that will serve them has the ports: of HTTP, HTTPS, two
// for itself, and that of HTTPS behind Passthrough.
func NewOracle(client clientset.Interface, flags OracleFlags, ports [5]int) (*Oracle, error) {
	nginx.StatusPort, nginx.StreamPort = ports[2], ports[3]
	parser.EnableAnnotationValidation = flags.ValidateAnnotations
	t, err := template.NewTemplate(nginx.TemplatePath)
	if err != nil {
		return nil, err
	}
	classes := &ingressclass.Configuration{Controller: ingressclass.DefaultControllerName, AnnotationValue: ingressclass.DefaultAnnotationValue}
	n := &NGINXController{
		t: t, stopCh: make(chan struct{}), updateCh: channels.NewRingChannel(1024),
		resolver: []net.IP{net.IPv4(127, 0, 0, 1)}, metricCollector: metric.DummyCollector{},
		runningConfig: new(ingress.Configuration),
		cfg: &Configuration{
			Client: client, IngressClassConfiguration: classes, FakeCertificate: ssl.GetFakeSSLCert(),
			DefaultService: flags.DefaultBackendService, DefaultSSLCertificate: flags.DefaultSSLCertificate,
			ListenPorts:         &config.ListenPorts{HTTP: ports[0], HTTPS: ports[1], Health: ports[3], Default: ports[3], SSLProxy: ports[4]},
			MaxmindEditionFiles: new([]string), EnableSSLPassthrough: flags.Passthrough,
		},
		Proxy: &tcpproxy.TCPProxy{Default: &tcpproxy.TCPServer{Hostname: "localhost", IP: "127.0.0.1", Port: ports[4], ProxyProtocol: true}},
	}
	n.store = store.New("", labels.Everything(), flags.ConfigMap, "", "", flags.DefaultSSLCertificate, time.Hour, client, n.updateCh, false, true, classes, true)
	o := &Oracle{controller: n}
	n.store.Run(n.stopCh)
	if err := o.settle(client, flags.DefaultSSLCertificate); err != nil {
		o.Close()
		return nil, err
	}
	_, _, o.plan = n.getConfiguration(n.store.ListIngresses())
	return o, nil
}

// settle waits until the store has all Ingresses, the certificates that they name and fallback:
// when its informers have synced, they still hand over what they have. Of an Ingress that
// ingress-nginx refuses, or a Secret that is no certificate, it waits in vain.
func (o *Oracle) settle(client clientset.Interface, fallback string) error {
	list, err := client.NetworkingV1().Ingresses("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	store := o.controller.store
	lacks := func() error {
		if n := len(store.ListIngresses()); n != len(list.Items) {
			return fmt.Errorf("it serves %d of %d Ingresses", n, len(list.Items))
		}
		if fallback != "" {
			if _, err := store.GetLocalSSLCert(fallback); err != nil {
				return err
			}
		}
		for _, i := range list.Items {
			for _, t := range i.Spec.TLS {
				if _, err := client.CoreV1().Secrets(i.Namespace).Get(context.Background(), t.SecretName, metav1.GetOptions{}); err != nil {
					continue
				}
				if _, err := store.GetLocalSSLCert(i.Namespace + "/" + t.SecretName); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for range 6000 { // a minute
		if err = lacks(); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// Conf returns the nginx.conf.
func (o *Oracle) Conf() ([]byte, error) {
	cfg := o.controller.store.GetBackendConfiguration()
	cfg.Resolver, cfg.WorkerProcesses = o.controller.resolver, "1"
	return o.controller.generateTemplate(cfg, *o.plan)
}

// Handle serves a connection of HTTPS, if flags have Passthrough.
func (o *Oracle) Handle(c net.Conn) { o.controller.Proxy.Handle(c) }

// Configure tells an nginx that was just started the endpoints and certificates, which its Lua
// keeps. On a busy machine that takes its time, unless nginx has ended.
func (o *Oracle) Configure(ended <-chan struct{}) error {
	for begin := time.Now(); ; {
		err := o.controller.configureDynamically(o.plan)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("nginx has ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(begin) > time.Minute {
			return fmt.Errorf("nginx does not take its endpoints: %w", err)
		}
	}
}

// Close ends its informers.
func (o *Oracle) Close() { close(o.controller.stopCh) }
