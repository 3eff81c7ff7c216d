// Package web has the pages of a server, for browsers: what people look at to see when a run is done
// and what it is stuck on.
//
// The pages are made by the server alone, from templates, and all that they need is in the program:
// nothing is loaded from elsewhere. They ask the API's views (api.Service), as programs do, so they
// see snapshots of the core; none of them reads the store of a run that is under way. Each page costs
// the same however many jobs there are: lists have pages, and times are put together into few bins.
//
// Who asks needs the token of the server, in a link for the first time ([Access]) and in a cookie
// from then on, or in a header, as programs do. Requests of other sites are refused. Scripts and
// styles come from the server itself, none stands in a page, and all text of jobs is escaped.
//
// A page that is open asks again and again how it looks now, and holds no connection between. The server
// makes it again only when it has rested, the longer the more it took, so that all pages together cost at
// most a few percent of a processor.
package web
