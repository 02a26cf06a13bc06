package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Page is a page of a Service's pods, as one asks for through the API server.
type Page struct {
	Namespace, Service string
	Port               string // its name
	Path               string
	Query              url.Values
	// Account is a ServiceAccount of the namespace that may get the page. A token of
	// it, made for the purpose, is shown in the header Token, over TLS alone: the API
	// server keeps Authorization for itself, and nobody's own token goes to a pod.
	Account, Token string
	// Preferring is a parameter by which some pods say, with 421 Misdirected Request, that
	// another knows better. It is left away where all do, as far as one can tell.
	Preferring string
}

// detours is how many pods in a row may send us to another. The API server chooses
// among two of which one leads, as a rule: one question in 256 is not answered by it.
const detours = 8

// Why a page cannot be had: this account may not, or nobody answers, or no API server lets
// whoever asks in, so that there is nothing else to be had either.
var (
	ErrDenied     = errors.New("denied")
	ErrUnanswered = errors.New("no answer")
	ErrNoServer   = errors.New("no API server lets us in")
)

// tokenLife is how long the token of an Account is valid, the shortest that the API
// server makes.
const tokenLife = 600 // seconds

// tokenUse is how long it is shown.
const tokenUse = 8 * time.Minute

// Asker asks for pages, one after the other. It keeps its connections, and the token of the
// Account as long as that is valid. After an error it begins anew: the kubeconfig or the
// Account may be another one.
type Asker struct {
	kubeconfig Kubeconfig
	component  string
	now        func() time.Time

	clients *clients // nil: there are none yet
	token   string
	account string    // the token is its
	until   time.Time // the token is shown
}

// NewAsker returns one of a kubeconfig, which names itself to the server.
func NewAsker(kubeconfig Kubeconfig, component string) *Asker {
	return &Asker{kubeconfig: kubeconfig, component: component, now: time.Now}
}

// Close ends connections.
func (a *Asker) Close() {
	if a.clients != nil {
		a.clients.http.CloseIdleConnections()
	}
	a.clients, a.token = nil, ""
}

// Ask reads a page as JSON into a value. The API server connects to a pod that is
// ready, for whoever may create a token of the Account and get services/proxy of that
// name: neither the pod's network nor any object need be in reach. The error may wrap
// ErrDenied, ErrUnanswered or ErrNoServer.
func (a *Asker) Ask(ctx context.Context, p Page, into any) error {
	err := a.ask(ctx, &p, into)
	if err != nil {
		a.Close()
	}
	return err
}

func (a *Asker) ask(ctx context.Context, p *Page, into any) (err error) {
	if a.clients == nil {
		if a.clients, err = newClients(a.kubeconfig, a.component, []schema.GroupVersion{corev1.SchemeGroupVersion}); err != nil {
			return fmt.Errorf("%w: %w", ErrNoServer, err)
		}
	}
	core := a.clients.byGroup[corev1.SchemeGroupVersion]
	if err := a.renew(ctx, core, p); err != nil {
		return err
	}
	text, err := p.preferred(ctx, core, "https", a.token)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		var plain error // a port that asks for no token speaks no TLS, and is shown none
		if text, plain = p.preferred(ctx, core, "http", ""); plain == nil {
			err = nil
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("this account may not get services/proxy https:%s:%s in namespace %s: %w: %w", p.Service, p.Port, p.Namespace, ErrDenied, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Service %s/%s, or no page %s on it: %w", p.Namespace, p.Service, p.Path, err)
	case err != nil && !isOwnAnswer(err):
		return fmt.Errorf("ask Service %s/%s: %w: %w", p.Namespace, p.Service, ErrUnanswered, err)
	case err != nil:
		return fmt.Errorf("ask Service %s/%s: %w", p.Namespace, p.Service, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer of Service %s/%s is not Quayside's: %w", p.Namespace, p.Service, err)
	}
	return nil
}

// renew has a token of a page's Account made, unless there is one that is valid for a while.
func (a *Asker) renew(ctx context.Context, core rest.Interface, p *Page) error {
	account := p.Namespace + "/" + p.Account
	if a.token != "" && a.account == account && a.now().Before(a.until) {
		return nil
	}
	life, asked := int64(tokenLife), a.now()
	made := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
	err := core.Post().Namespace(p.Namespace).Resource("serviceaccounts").Name(p.Account).SubResource("token").Body(made).Do(ctx).Into(made)
	if err == nil && made.Status.Token == "" {
		return fmt.Errorf("a token of ServiceAccount %s: the API server made none", account)
	}
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: it does not know who asks; log in again, or correct the kubeconfig: %w", ErrNoServer, err)
	case err != nil && !errors.As(err, &answer): // nobody answered
		return fmt.Errorf("%w: %w", ErrNoServer, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("this account may not create a token of ServiceAccount %s: %w: %w", account, ErrDenied, err)
	case err != nil:
		return fmt.Errorf("a token of ServiceAccount %s: %w", account, err)
	}
	a.token, a.account, a.until = made.Status.Token, account, asked.Add(tokenUse)
	return nil
}

// isOwnAnswer reports whether a pod answered, and not the API server that none does.
func isOwnAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) &&
		!apierrors.IsServerTimeout(err) && !apierrors.IsInternalError(err)
}

// preferred is get from a pod that does not send us to another, or else from any.
func (p *Page) preferred(ctx context.Context, core rest.Interface, scheme, token string) ([]byte, error) {
	better := *p
	if p.Preferring != "" {
		better.Query = maps.Clone(p.Query)
		if better.Query == nil {
			better.Query = url.Values{}
		}
		better.Query.Set(p.Preferring, "true")
	}
	for range detours {
		text, err := better.get(ctx, core, scheme, token)
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != http.StatusMisdirectedRequest {
			return text, err
		}
	}
	return p.get(ctx, core, scheme, token)
}

// get shows a token, which may be empty.
func (p *Page) get(ctx context.Context, core rest.Interface, scheme, token string) ([]byte, error) {
	request := core.Get().Namespace(p.Namespace).Resource("services").Name(scheme + ":" + p.Service + ":" + p.Port).
		SubResource("proxy").Suffix(strings.TrimPrefix(p.Path, "/"))
	if token != "" {
		request = request.SetHeader(p.Token, "Bearer "+token)
	}
	for key, values := range p.Query {
		for _, v := range values {
			request = request.Param(key, v)
		}
	}
	return raw(request.Do(ctx))
}
