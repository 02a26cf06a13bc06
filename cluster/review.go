package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/cluster/snapshot"
)

// Review asks the API server whose a bearer token is (TokenReview), and whether that
// user may get a path that is no resource (SubjectAccessReview). A token of nobody
// has no user. The identity is all that the second depends on; it is not asked where mayGet
// says of it that the user may. It returns an error where the server could not be asked.
// While watches of this process wait for their turn, it comes after them.
func (a *API) Review(ctx context.Context, token, path string, mayGet func(identity string) bool) (user, identity string, allowed bool, err error) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err = a.askReview(ctx, authenticationv1.SchemeGroupVersion, "tokenreviews", who); err != nil {
		return "", "", false, fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated || who.Status.User.Username == "" {
		return "", "", false, nil
	}
	user = who.Status.User.Username
	if identity, err = identityOf(who.Status.User); err != nil {
		return "", "", false, fmt.Errorf("review a token of %s: %w", user, err)
	}
	if mayGet(identity) {
		return user, identity, true, nil
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		User:                  user, UID: who.Status.User.UID, Groups: who.Status.User.Groups,
		Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for key, values := range who.Status.User.Extra {
		may.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err = a.askReview(ctx, authorizationv1.SchemeGroupVersion, "subjectaccessreviews", may); err != nil {
		return "", "", false, fmt.Errorf("review the access of %s to %s: %w", user, path, err)
	}
	return user, identity, may.Status.Allowed && !may.Status.Denied, nil
}

// credentialID is in what the API server says of a user since 1.32: the token's own name,
// another one for each token.
const credentialID = "authentication.kubernetes.io/credential-id"

// identityOf writes down who a user is, whichever token it shows.
func identityOf(u authenticationv1.UserInfo) (string, error) {
	u.Extra = maps.Clone(u.Extra)
	delete(u.Extra, credentialID)
	text, err := json.Marshal(u) // which sorts keys
	return string(text), err
}

// lastOfAll comes after every kind at the gate.
const lastOfAll = snapshot.Kind(math.MaxInt)

// askReview has the server fill in a review.
func (a *API) askReview(ctx context.Context, group schema.GroupVersion, resource string, review runtime.Object) error {
	t, err := a.gate.enter(ctx, lastOfAll, false)
	if err != nil {
		return err
	}
	bounded, cancel := deadline(ctx)
	err = a.clients.byGroup[group].Post().Resource(resource).Body(review).MaxRetries(0).Do(bounded).Into(review)
	cancel()
	a.gate.leave(bounded, t, err) // which has ended: a review that fails says nothing about watches
	return err
}
