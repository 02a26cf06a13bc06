// Package dispatch is what every front end calls for each request: it matches the
// route, runs the route's filters, forwards to the backend, counts and logs.
//
// The component gives the Dispatcher, as an exchange.Handler, to the front ends;
// it alone declares the routes, with SetTable. The package knows neither fasthttp
// nor a connection.
//
// What holds: a request keeps the table it began with. A panic is answered with
// 500 and closes the response that was there. A request allocates nothing, and
// neither does a filter that only looks at the exchange.
//
// A new filter: add its settings to filter.Settings and a constructor to package
// filter that returns a filter.Filter (look at filter.ToTLS: options are read once,
// when the constructor runs; the functions get the exchange alone), put it into its
// place in the order of filter.Compile, and fill the settings from an option row of
// package route. Test it over an exchange, with testing.AllocsPerRun, and once
// through HTTP under the name of its key.
//
// A new front end: fill exchange.Request, with Client the address of the
// connection, and Received; call Handle once; write Response and close its Body,
// or hand the connection to Response.Upgraded; then tell the Observer. What cannot
// be understood is answered first and handled all the same, so that it is counted.
// Forget nothing between requests: Reset.
//
// recipe_test.go adds one of each, and test/house a filter with its option row. Read
// dispatch.go first, then plan.go.
package dispatch
