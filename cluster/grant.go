package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"quayside.io/cluster/snapshot"
)

const (
	grantAgain  = time.Minute // between looks at what became of the grants
	grantRetry  = time.Second // after a failure; longer each time
	grantWrites = 16          // under way at once
	grantNews   = 3           // of so many namespaces the log says at once why not
	managedBy   = "app.kubernetes.io/managed-by"
	ourselves   = "quayside-controller"
)

// Grant is what an account may read of one namespace: all Secrets and ConfigMaps,
// or those named.
type Grant struct {
	Namespace           string
	All                 bool
	Secrets, ConfigMaps []string
}

// GrantOptions say who gets the Grants, and how they are called.
type GrantOptions struct {
	// Name is that of each Role and RoleBinding, in every namespace.
	Name string
	// Former is a name that they had before; empty: none. What has it goes once all is
	// granted under the other.
	Former string
	// Namespace is the only one in which anything is granted, and was; empty: in all.
	Namespace string
	// Account is the ServiceAccount that may read.
	Account snapshot.Key
	// Owner is a ClusterRole that they are deleted with; empty, or one that does
	// not exist: nobody deletes them but Grants.
	Owner string
}

// Grants keeps a Role and a RoleBinding in each namespace of which an account may
// read something. RBAC lets a process grant only what it may do itself, so it must
// be able to read what it grants. What is not wanted it looks for in all namespaces, unless
// there is only one, for there may have been more of which it was to grant something.
type Grants struct {
	api     *API
	options GrantOptions
	wake    chan struct{}
	refused atomic.Pointer[map[string]string] // never nil
	changed chan struct{}                     // refused has

	mu   sync.Mutex
	want map[string]Grant // nil: nobody has said
}

// Grants returns one that does nothing yet.
func (a *API) Grants(o GrantOptions) *Grants {
	g := &Grants{api: a, options: o, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	g.refused.Store(&map[string]string{})
	return g
}

// Refused says of each namespace of which something is to be granted, and is not, why.
// It must not be modified.
func (g *Grants) Refused() map[string]string { return *g.refused.Load() }

// Changed receives a value when Refused says another thing than before.
func (g *Grants) Changed() <-chan struct{} { return g.changed }

// Set declares all Grants; the latest call counts. What was granted beyond them
// is taken back.
func (g *Grants) Set(grants []Grant) {
	want := make(map[string]Grant, len(grants))
	for _, grant := range grants {
		want[grant.Namespace] = grant
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.want = want
	wake(g.wake)
}

func (g *Grants) wanted() map[string]Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.want
}

// Run grants and takes back until ctx ends, and repairs what others changed.
func (g *Grants) Run(ctx context.Context) error {
	retry := grantRetry
	for {
		pause := grantAgain
		if want := g.wanted(); want != nil {
			failed, err := g.settle(ctx, want)
			if ctx.Err() != nil {
				return nil
			}
			if err == nil && len(failed) == 0 {
				failed, err = g.takeFormer(ctx)
			}
			if err == nil {
				g.note(failed, want)
			} else {
				g.api.log.Warn("an account cannot be given what it may read; trying again", "account", g.options.Account, "error", err)
			}
			if err != nil || hasHope(failed) {
				pause, retry = retry, min(2*retry, grantAgain)
			} else {
				retry = grantRetry
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.wake:
		case <-time.After(pause):
		}
	}
}

// TakeBack takes back, once, all that was granted under this name. An account that may
// not see what that is has nothing to take back: somebody else grants.
func (g *Grants) TakeBack(ctx context.Context) error {
	failed, err := g.settle(ctx, nil)
	if err == nil && len(failed) == 0 {
		failed, err = g.takeFormer(ctx)
	}
	if err = errors.Join(err, errors.Join(slices.Collect(maps.Values(failed))...)); !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// errNotOurs is that of an object under our name that another client made.
var errNotOurs = errors.New("is not ours")

// hasHope reports whether it is of use to try again soon: an object of another client stays.
func hasHope(failed map[string]error) bool {
	for _, err := range failed {
		if !errors.Is(err, errNotOurs) {
			return true
		}
	}
	return false
}

// note says which of the namespaces wanted are refused, and logs what is news.
func (g *Grants) note(failed map[string]error, want map[string]Grant) {
	before, refused, news := g.Refused(), map[string]string{}, 0
	for namespace, err := range failed {
		if said := err.Error(); before[namespace] != said && news < grantNews {
			news++
			g.api.log.Warn("an account cannot be given what it may read of a namespace", "account", g.options.Account, "namespace", namespace, "namespaces", len(failed), "error", err)
		}
		if _, wanted := want[namespace]; wanted {
			refused[namespace] = err.Error()
		}
	}
	if !maps.Equal(before, refused) {
		g.refused.Store(&refused)
		wake(g.changed)
	}
}

// settle makes what there is into what is wanted: adds before it removes, a Role
// before its binding. failed says what went wrong in which namespace.
func (g *Grants) settle(ctx context.Context, want map[string]Grant) (failed map[string]error, err error) {
	haveRole, haveBinding, err := g.have(ctx, g.options.Name)
	if err != nil {
		return nil, err
	}
	owners, err := g.owners(ctx)
	if err != nil {
		return nil, err
	}
	failed = each(slices.Sorted(maps.Keys(want)), func(namespace string) error {
		meta := metav1.ObjectMeta{Name: g.options.Name, Namespace: namespace, Labels: map[string]string{managedBy: ourselves}, OwnerReferences: owners}
		err := g.role(ctx, haveRole[namespace], meta, want[namespace])
		if err == nil { // no account is bound to a Role that is not ours
			err = g.binding(ctx, haveBinding[namespace], meta)
		}
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
			return nil // all that is in it goes, too
		}
		return err
	})
	maps.Copy(failed, g.takeBeyond(ctx, g.options.Name, haveRole, haveBinding, want))
	return failed, nil
}

// takeFormer takes back what has the former name.
func (g *Grants) takeFormer(ctx context.Context) (failed map[string]error, err error) {
	if g.options.Former == "" || g.options.Former == g.options.Name {
		return nil, nil
	}
	roles, bindings, err := g.have(ctx, g.options.Former)
	if err != nil {
		return nil, err
	}
	return g.takeBeyond(ctx, g.options.Former, roles, bindings, nil), nil
}

// takeBeyond takes back what has that name and is not wanted, a binding before its Role.
func (g *Grants) takeBeyond(ctx context.Context, name string, roles map[string]*rbacv1.Role, bindings map[string]*rbacv1.RoleBinding, want map[string]Grant) (failed map[string]error) {
	failed = each(beyond(bindings, want), func(namespace string) error { return g.remove(ctx, "rolebindings", namespace, name) })
	maps.Copy(failed, each(beyond(roles, want), func(namespace string) error { return g.remove(ctx, "roles", namespace, name) }))
	return failed
}

// beyond returns the namespaces in which there is something of ours that is not
// wanted there.
func beyond[V metav1.Object](have map[string]V, want map[string]Grant) (namespaces []string) {
	for namespace, o := range have {
		if _, wanted := want[namespace]; !wanted && o.GetLabels()[managedBy] == ourselves {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// each does something in several namespaces at once and returns what went wrong where.
func each(namespaces []string, do func(namespace string) error) map[string]error {
	errs := make([]error, len(namespaces))
	var group errgroup.Group
	group.SetLimit(grantWrites)
	for i, namespace := range namespaces {
		group.Go(func() error { errs[i] = do(namespace); return nil })
	}
	_ = group.Wait() // the errors are in errs
	failed := map[string]error{}
	for i, err := range errs {
		if err != nil {
			failed[namespaces[i]] = err
		}
	}
	return failed
}

func (g *Grants) role(ctx context.Context, have *rbacv1.Role, meta metav1.ObjectMeta, grant Grant) error {
	rules := rulesOf(grant)
	switch {
	case have == nil:
		return g.write(ctx, "roles", meta.Namespace, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, false)
	case have.Labels[managedBy] != ourselves:
		return fmt.Errorf("role %s/%s %w: give it another name, or delete it", meta.Namespace, meta.Name, errNotOurs)
	case equality.Semantic.DeepEqual(have.Rules, rules) && equality.Semantic.DeepEqual(have.OwnerReferences, meta.OwnerReferences):
		return nil
	}
	have.Rules, have.OwnerReferences = rules, meta.OwnerReferences
	return g.write(ctx, "roles", meta.Namespace, have, true)
}

func (g *Grants) binding(ctx context.Context, have *rbacv1.RoleBinding, meta metav1.ObjectMeta) error {
	b := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: g.options.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: g.options.Account.Namespace, Name: g.options.Account.Name}},
	}
	switch {
	case have == nil:
		return g.write(ctx, "rolebindings", meta.Namespace, b, false)
	case have.Labels[managedBy] != ourselves:
		return fmt.Errorf("role binding %s/%s %w: give it another name, or delete it", meta.Namespace, meta.Name, errNotOurs)
	case have.RoleRef != b.RoleRef: // it cannot be changed
		if err := g.remove(ctx, "rolebindings", meta.Namespace, g.options.Name); err != nil {
			return err
		}
		return g.write(ctx, "rolebindings", meta.Namespace, b, false)
	case equality.Semantic.DeepEqual(have.Subjects, b.Subjects) && equality.Semantic.DeepEqual(have.OwnerReferences, meta.OwnerReferences):
		return nil
	}
	have.Subjects, have.OwnerReferences = b.Subjects, meta.OwnerReferences
	return g.write(ctx, "rolebindings", meta.Namespace, have, true)
}

// rulesOf spells a Grant.
func rulesOf(grant Grant) (rules []rbacv1.PolicyRule) {
	rule := func(resource string, names []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}}
	}
	for _, of := range []struct {
		resource string
		names    []string
	}{{"secrets", grant.Secrets}, {"configmaps", grant.ConfigMaps}} {
		if grant.All {
			rules = append(rules, rule(of.resource, nil))
		} else if len(of.names) > 0 { // no names would mean all
			rules = append(rules, rule(of.resource, of.names))
		}
	}
	return rules
}

// have is what there is under a name, in every namespace or the only one.
func (g *Grants) have(ctx context.Context, name string) (map[string]*rbacv1.Role, map[string]*rbacv1.RoleBinding, error) {
	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	if err := errors.Join(g.list(ctx, "roles", name, roles), g.list(ctx, "rolebindings", name, bindings)); err != nil {
		return nil, nil, err
	}
	haveRole, haveBinding := map[string]*rbacv1.Role{}, map[string]*rbacv1.RoleBinding{}
	for i := range roles.Items {
		haveRole[roles.Items[i].Namespace] = &roles.Items[i]
	}
	for i := range bindings.Items {
		haveBinding[bindings.Items[i].Namespace] = &bindings.Items[i]
	}
	return haveRole, haveBinding, nil
}

// list asks for that name alone, so that the account needs no right to see other roles.
func (g *Grants) list(ctx context.Context, resource, name string, into runtime.Object) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	o := &metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	request := g.api.clients.byGroup[rbacv1.SchemeGroupVersion].Get()
	err := request.NamespaceIfScoped(g.options.Namespace, g.options.Namespace != "").Resource(resource).VersionedParams(o, g.api.clients.parameters).Do(bounded).Into(into)
	if err != nil {
		return fmt.Errorf("list %s named %s: %w", resource, name, err)
	}
	return nil
}

// owners is who the garbage collector deletes them with.
func (g *Grants) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	if g.options.Owner == "" || len(g.wanted()) == 0 {
		return nil, nil
	}
	owner, err := g.api.owner(ctx, g.options.Owner)
	if err != nil {
		return nil, err
	}
	return []metav1.OwnerReference{owner}, nil
}

func (g *Grants) write(ctx context.Context, resource, namespace string, o runtime.Object, there bool) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	client := g.api.clients.byGroup[rbacv1.SchemeGroupVersion]
	request := client.Post()
	if there {
		request = client.Put().Name(g.options.Name)
	}
	if err := request.Namespace(namespace).Resource(resource).Body(o).Do(bounded).Error(); err != nil {
		return fmt.Errorf("write %s %s/%s: %w", resource, namespace, g.options.Name, err)
	}
	return nil
}

func (g *Grants) remove(ctx context.Context, resource, namespace, name string) error {
	bounded, cancel := deadline(ctx)
	defer cancel()
	err := g.api.clients.byGroup[rbacv1.SchemeGroupVersion].Delete().Namespace(namespace).Resource(resource).Name(name).Do(bounded).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s/%s: %w", resource, namespace, name, err)
	}
	return nil
}
