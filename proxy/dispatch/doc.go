// Package dispatch handles each request of every front end: it matches the route, runs the
// route's filters, forwards to the backend, counts and logs.
//
// The component passes the Dispatcher to the front ends as their exchange.Handler, and
// declares the routes with SetTable. The package knows neither fasthttp nor connections.
//
// What holds: a request keeps the table with which it began. One whose path a script or an
// error page has moved passes the filters of the route that has the new path. A panic is
// answered with 500 and closes the response that was there. A request allocates nothing, and
// neither does a filter that only reads the exchange.
//
// A new filter: add its settings to filter.Settings and a constructor to package filter that
// returns a filter.Filter (look at filter.ToTLS: options are read once, when the constructor
// runs; the functions get only the exchange), put it into its place in the order of
// filter.Compile, and fill the settings from an option row of package route. Test it on an
// exchange, with testing.AllocsPerRun, and once through HTTP under the name of its key.
//
// A new front end: fill exchange.Request, with Client the address of the connection, and
// Received; call Handle once; write Response and close its Body, or pass the connection to
// Response.Upgraded; then call the Observer. A request that cannot be parsed is answered
// first and handled all the same, so that it is counted. Reset everything between requests.
//
// recipe_test.go adds one of each, and test/house a filter with its option row. Read
// dispatch.go first, then plan.go.
package dispatch
