"""VERIFY: whether a site that runs gives the right responses.

The suite makes the checks of `checks`, each a function, through the port that visitors use. The expected pages are
rendered in process. `wire` is the HTTP client, `site` knows which pages there are, `rows` writes rows to see that pages
follow, and `hosts` reaches deployments on other machines.
"""
