"""VERIFY: check that a running site gives the right responses.

The suite runs the functions in `checks` through the port that visitors use. The expected pages are rendered in process.
`wire` is the HTTP client, `site` knows the pages, `rows` writes rows to see pages follow, and `hosts` reaches
deployments on other machines.
"""
