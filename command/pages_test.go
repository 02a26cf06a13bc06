package command

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"quayside.io/cluster/manifest"
)

// page is a page of the documentation.
type page struct {
	path string
	text string
	// commands are the lines of its shell blocks, without comments, and objects the
	// YAML documents of its blocks and of what its commands are fed.
	commands, objects []string
}

// pages reads what people are told to type.
func pages(t *testing.T) (all []page) {
	t.Helper()
	paths, err := filepath.Glob("../docs/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("pages %q, %v", paths, err)
	}
	block := regexp.MustCompile("(?ms)^```(sh|yaml)\n(.*?)^```$")
	fed := regexp.MustCompile(`(?ms) <<(\w+)\n(.*?)^(\w+)$`)
	comment := regexp.MustCompile(`(^| +)#.*`)
	for _, path := range append(paths, "../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := page{path: path, text: string(text)}
		for _, b := range block.FindAllStringSubmatch(p.text, -1) {
			if b[1] == "yaml" {
				if strings.Contains(b[2], "apiVersion:") {
					p.objects = append(p.objects, b[2])
				}
				continue
			}
			for _, f := range fed.FindAllStringSubmatch(b[2], -1) {
				p.objects = append(p.objects, f[2])
			}
			script := strings.ReplaceAll(fed.ReplaceAllString(b[2], ""), "\\\n", " ")
			for line := range strings.Lines(script) {
				if line = strings.TrimSpace(comment.ReplaceAllString(strings.TrimSpace(line), "")); line != "" {
					p.commands = append(p.commands, line)
				}
			}
		}
		all = append(all, p)
	}
	return all
}

// Every command of ours that the pages show is one, flags and arguments included, and
// what others are told to read is there.
func TestPagesShowCommandsThatExist(t *testing.T) {
	inline := regexp.MustCompile("`(quayside [a-z][^`]*)`")
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, p := range pages(t) {
		commands := slices.Clone(p.commands)
		for _, in := range inline.FindAllStringSubmatch(p.text, -1) {
			if _, name, _ := strings.Cut(in[1], " "); strings.Contains(name, " ") {
				commands = append(commands, in[1])
			} else if _, _, err := (&env{}).command("quayside").Find([]string{name}); err != nil {
				t.Errorf("%s: %s: %v", p.path, in[1], err)
			}
		}
		for _, line := range commands {
			line, _, _ = strings.Cut(line, " >")
			line = strings.TrimPrefix(strings.TrimPrefix(line, "./"), "kubectl ")
			words := strings.Fields(strings.ReplaceAll(line, "go run .", "quayside"))
			switch {
			case words[0] == "make":
				for _, target := range words[1:] {
					if target == "&&" {
						break
					}
					if !strings.Contains(string(makefile), "\n"+target+":") {
						t.Errorf("%s: %s: no such target", p.path, line)
					}
				}
			case words[0] == "quayside" && len(words) > 1:
				checked++
				if err := parses(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", p.path, line, err)
				}
			}
			for _, word := range words {
				if strings.HasPrefix(word, "charts/") {
					if _, err := os.Stat("../" + word); err != nil {
						t.Errorf("%s: %s: %v", p.path, line, err)
					}
				}
			}
		}
	}
	if checked < 12 {
		t.Errorf("only %d commands: this test looks in the wrong place", checked)
	}
	for _, wrong := range []string{"sail", "status --speed=9", "trace", "up more"} {
		if parses(strings.Fields(wrong)) == nil {
			t.Errorf("quayside %s passes: this test proves nothing", wrong)
		}
	}
}

// parses reports whether args are a command of ours, without running it.
func parses(args []string) error {
	c, rest, err := (&env{}).command("quayside").Find(args)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}

// pagesNode is the node of the pages, so that this machine's addresses do not matter.
const pagesNode = `
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}], conditions: [{type: Ready, status: "True"}]}
`

// The workflows are YAML, and run targets of make that there are.
func TestWorkflowsRunTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("workflows %q, %v", paths, err)
	}
	target := regexp.MustCompile(`\bmake ([a-z-]+)`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var workflow map[string]any
		if err := yaml.UnmarshalStrict(text, &workflow); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		found := target.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s runs nothing", path)
		}
		for _, f := range found {
			if !strings.Contains(string(makefile), "\n"+f[1]+":") {
				t.Errorf("%s: %s: no such target", path, f[0])
			}
		}
	}
}

// What a page tells to apply is taken as it stands, and nothing has to be mended.
func TestPagesShowObjectsThatWork(t *testing.T) {
	count := 0
	for _, p := range pages(t) {
		if len(p.objects) == 0 {
			continue
		}
		text := strings.Join(append(p.objects, pagesNode), "\n---\n")
		kinds := map[string]bool{}
		for _, o := range manifest.Decode(p.path, []byte(text)).Objects {
			kinds[o.GetName()] = true
			count++
		}
		var out terminalLess
		file := writeFile(t, t.TempDir(), "page.yaml", text)
		if code := Run(t.Context(), "dev", []string{"quayside", "up", "--once", "--maxmind-edition-ids=GeoLite2-Country", "-f", file}, &out, &out); code != exitDone {
			t.Errorf("%s: exit code %d for %q:\n%s", p.path, code, slices.Sorted(maps.Keys(kinds)), out.String())
		}
	}
	if count < 15 {
		t.Errorf("only %d objects: this test looks in the wrong place", count)
	}
}

// Whatever a page links to in the repository is there.
func TestPagesLinkToWhatIsThere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, p := range pages(t) {
		for _, l := range link.FindAllStringSubmatch(p.text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(p.path), l[1])); err != nil {
				t.Errorf("%s: %v", p.path, err)
			}
		}
	}
}
