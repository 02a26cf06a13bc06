package cluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// Review asks the API server whose a bearer token is (TokenReview), and whether that
// user may get a path that is no resource (SubjectAccessReview). A token of nobody
// has no user. It returns an error where the server could not be asked.
func (a *API) Review(ctx context.Context, token, path string) (user string, allowed bool, err error) {
	bounded, cancel := deadline(ctx)
	defer cancel()
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	err = a.clients.byGroup[authenticationv1.SchemeGroupVersion].Post().Resource("tokenreviews").Body(who).Do(bounded).Into(who)
	if err != nil {
		return "", false, fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated || who.Status.User.Username == "" {
		return "", false, nil
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		User:                  who.Status.User.Username, UID: who.Status.User.UID, Groups: who.Status.User.Groups,
		Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for key, values := range who.Status.User.Extra {
		may.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	err = a.clients.byGroup[authorizationv1.SchemeGroupVersion].Post().Resource("subjectaccessreviews").Body(may).Do(bounded).Into(may)
	if err != nil {
		return "", false, fmt.Errorf("review the access of %s to %s: %w", who.Status.User.Username, path, err)
	}
	return who.Status.User.Username, may.Status.Allowed && !may.Status.Denied, nil
}
