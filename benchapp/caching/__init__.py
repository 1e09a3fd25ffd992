"""Caching layers for a Django site: a reusable app.

A site installs `benchapp.caching`, names the active layers in CACHING_LAYERS, puts `registry.outer_middleware` and
`registry.inner_middleware` into MIDDLEWARE, and calls `invalidation.invalidate` with the pages that a write made stale.
The app imports nothing of the site.

registry      every layer: its options, its middleware, and what it does when pages become stale
invalidation  which pages are stale, sent to the active layers after the commit
cacheability  which requests and responses a shared cache may serve and store
generations   keys that a write makes unreachable, for layers in a Django cache
render_lock   request coalescing: one rendering for all requests for a missing page; `lock_holder` says who renders it
resilience    the circuit breaker and the delayed retry for a backend that is down
django_cache  per-site middleware and cached views; `fragments` caches parts of a page
page_store    finished pages stored where a server reads them; `stores` are the places
purge         caches of other programs: their stale pages are removed over HTTP or from disk
repairs       faults of Django's cache backends and of pymemcache
"""
