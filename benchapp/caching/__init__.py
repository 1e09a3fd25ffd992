"""Caching layers for a Django site: a reusable app.

A site installs `benchapp.caching`, puts the two classes of `middleware` into MIDDLEWARE, and names the stale pages of
each write in CACHING_STALE, or passes them to `invalidation.invalidate`: docs/caching.md. The app imports nothing of
the site.

conf          the settings, with their defaults; `checks`: errors in them
middleware    the outermost and the innermost middleware, which build what the active layers need
registry      every layer: options, middleware, and the function that drops stale pages
invalidation  stale pages, sent to the active layers after the commit
model_signals  writes to models, each of which invalidates the pages of its row; `stale_rules` has the rules of
              settings, and `row_values` the names of values in them
cacheability  requests and responses that a shared cache may serve and store
request_reads  the rule: values of a visitor that no public page may read; `watched`: how reads are noted
hosts         the site's own host, port and scheme; `local_hosts`: names of this machine
harmless      values that a site reads although no page depends on them
outcome       hit, miss, or the reason why a page passes the cache
variants      pages by query string and language
names         the name of a page, for storing, serving and invalidating
pages         middleware that stores whole pages, in Django's cache (`django_cache`) or for a server (`stores`)
generations   keys that a write makes unreachable, for layers in a Django cache
render_lock   request coalescing: one rendering for all requests for a missing page
resilience    the circuit breaker and the delayed retry for a backend that is down
outside       caches of other programs: the pages they may store, and how stale pages are removed
private_apis  undocumented parts of Django and pymemcache that the app uses
"""
