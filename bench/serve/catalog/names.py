"""Names for the absence of something, as command lines, results and reports spell them."""

# A case without a caching layer, and one without a limit of resources.
NO_LAYER, NO_LIMIT = "none", "unlimited"
