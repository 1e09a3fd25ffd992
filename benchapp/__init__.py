"""The site that is measured: authors, their posts and the comments on them."""
