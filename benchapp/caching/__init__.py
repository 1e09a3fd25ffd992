"""Caching layers for a Django site: a reusable app.

A site installs `benchapp.caching`, puts the two classes of `middleware` into MIDDLEWARE, and names in CACHING_STALE the
pages that a write makes stale, or calls `invalidation.invalidate` with them: docs/caching.md. It imports nothing of
the site.

conf          the settings, with their defaults; `checks`: what is wrong with them
middleware    the outermost and the innermost middleware, which build what the active layers need
registry      every layer: its options, its middleware, and what it does when pages become stale
invalidation  which pages are stale, sent to the active layers after the commit
watch         writes to models, each of which invalidates the pages of its row; `stale` has the rules of settings
cacheability  which requests and responses a shared cache may serve and store
reads         the rule: what a page may not read of its visitor; `watched`: how that is noted
hosts         the site's own host, port and scheme
harmless      what a site reads although no page depends on it
outcome       hit, miss, or the reason why a page passes the cache
variants      pages by query string and language
names         the name of a page, for all that stores, serves and invalidates it
pages         middleware that stores whole pages, in Django's cache (`django_cache`) or for a server (`stores`)
generations   keys that a write makes unreachable, for layers in a Django cache
render_lock   request coalescing: one rendering for all requests for a missing page
resilience    the circuit breaker and the delayed retry for a backend that is down
outside       caches of other programs: what they may store, and how their stale pages are removed
private_apis  all that the app uses of Django and pymemcache beyond their documentation
"""
