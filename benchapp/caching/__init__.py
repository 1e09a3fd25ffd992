"""Caching layers for a Django site: a reusable app.

A site installs `benchapp.caching`, names the active layers in CACHING_LAYERS, puts `registry.outer_middleware` and
`registry.inner_middleware` into MIDDLEWARE, and calls `invalidation.invalidate` with the pages that a write made stale.
The app imports nothing of the site.

registry      every layer: its options, its middleware, and what it does when pages become stale
invalidation  which pages are stale, sent to the active layers after the commit
watch         writes to models, each of which invalidates the pages of its row; `stale` has the rules of settings
cacheability  which requests and responses a shared cache may serve and store; `reads`: what a page read of its visitor
names         the name of a page, for all that stores, serves and invalidates it
pages         middleware that stores whole pages, in Django's cache (`django_cache`) or for a server (`stores`)
generations   keys that a write makes unreachable, for layers in a Django cache
render_lock   request coalescing: one rendering for all requests for a missing page
resilience    the circuit breaker and the delayed retry for a backend that is down
outside       caches of other programs: what they may store, and how their stale pages are removed
repairs       faults of Django's cache backends and of pymemcache
"""
