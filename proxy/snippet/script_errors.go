package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// errors makes the pages of what is wrong.
func (w *scripter) errors(list []nginxconf.Directive) error {
	pages := &w.script.Errors
	for i := range list {
		d := &list[i]
		switch d.Name() {
		case "error_page":
			page, err := w.errorPage(d)
			if err != nil {
				return at(d, err)
			}
			pages.Pages = append(pages.Pages, page)
		case "proxy_intercept_errors":
			pages.Intercepts = slices.Equal(d.Args(), []string{"on"})
		}
	}
	if len(pages.Pages) > maxSteps {
		return fmt.Errorf("it has more than %d directives error_page", maxSteps)
	}
	return nil
}

// errorPage reads error_page STATUS... [=[STATUS]] WHERE.
func (w *scripter) errorPage(d *nginxconf.Directive) (page filter.ErrorPage, err error) {
	args := d.Args()
	if d.Block != nil || len(args) < 2 {
		return page, errors.New("it is not statuses and where they lead")
	}
	where, args := args[len(args)-1], args[:len(args)-1]
	page.Status = filter.KeepStatus
	if said, changes := strings.CutPrefix(args[len(args)-1], "="); changes {
		args, page.Status = args[:len(args)-1], 0
		if said != "" {
			if page.Status, err = strconv.Atoi(said); err != nil || page.Status < 200 || page.Status > 599 {
				return page, fmt.Errorf("%q is not a status from 200 to 599", printable.Cut(said, MaxQuoted))
			}
		}
	}
	for _, arg := range args {
		status, err := strconv.Atoi(arg)
		if err != nil || status < 300 || status > 599 {
			return page, fmt.Errorf("%q is not a status from 300 to 599", printable.Cut(arg, MaxQuoted))
		}
		page.Statuses = append(page.Statuses, status)
	}
	if len(page.Statuses) == 0 {
		return page, errors.New("it names no status")
	}
	if strings.HasPrefix(where, "@") {
		if !slices.Contains(w.known.locations, where) {
			return page, fmt.Errorf("no server-snippet of the Ingress has a location %s that answers by itself", printable.Cut(where, MaxQuoted))
		}
		page.At = where
		return page, nil
	}
	page.To, err = w.names.ParseAnswered(where)
	return page, err
}
