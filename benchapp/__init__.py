"""The measured site: authors, posts and comments."""
