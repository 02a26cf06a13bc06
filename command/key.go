package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"quayside.io/cluster"
	"quayside.io/controller"
)

// keyStageAnnotation of the Secret with the gossip key says how far a change of it has
// come, and since when.
const keyStageAnnotation = "quayside.io/members-key-stage"

// componentLabel is what the chart calls the parts of a release by.
const componentLabel = "app.kubernetes.io/component"

// speakerPods select the speakers of the chart in the namespace of its release.
const speakerPods = componentLabel + "=speaker"

// rotation changes the gossip key every so often, a stage at a time.
func rotation(api *cluster.API, namespace string, every time.Duration) func(context.Context) (time.Time, error) {
	if every == 0 {
		return nil
	}
	return func(ctx context.Context) (next time.Time, err error) {
		// Without the right to list pods nobody is left out, which is safe.
		pods, unseen := api.NodesOfPods(ctx, namespace, speakerPods)
		now, holders := time.Now(), controller.HoldersOf(api.Snapshot(), pods)
		var waits error
		err = api.ChangeSecret(ctx, namespace, membersSecret, membersKey, keyStageAnnotation,
			func(file []byte, noted string, made time.Time) ([]byte, string) {
				stage, since := keyStage(noted, made)
				file, then, due, late := controller.RotateMembersKey(file, stage, since, now, every, holders)
				next, waits = due, late
				if then == stage {
					return file, noted
				}
				return file, string(then) + " " + now.UTC().Format(time.RFC3339)
			})
		if waits != nil && unseen != nil {
			waits = fmt.Errorf("%w; whether that node still has a speaker cannot be seen: %w", waits, unseen)
		}
		return next, errors.Join(err, waits)
	}
}

// keyStage reads what keyStageAnnotation says; a Secret without it is as it was made.
func keyStage(noted string, made time.Time) (controller.KeyStage, time.Time) {
	stage, text, _ := strings.Cut(noted, " ")
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return controller.KeySettled, made
	}
	return controller.KeyStage(stage), since
}
