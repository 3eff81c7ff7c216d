// Package people knows who asks a server over a network: by tokens, by logins at an identity provider,
// by proxies that the server trusts. It is the one place that believes somebody, and says so by a
// [rights.Principal] in the context of the call. What that may do, package rights says.
//
//   - [Door] keeps the tokens: in memory, and in the store as keyed hashes. A token that was revoked or
//     has expired ends what is done with it, streams included.
//   - [Service] has the calls about tokens, logins and the audit log.
//   - [Door.Interceptor] and [Door.Acted] write down what people have changed, and what they were refused.
//
// Whoever is not believed gets one answer, whatever was wrong; what a proxy says counts from the
// addresses and the socket of the settings only.
package people
