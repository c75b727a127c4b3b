"""Parts of the readers of all languages: tokens, a cursor over them, and findings with their places."""
