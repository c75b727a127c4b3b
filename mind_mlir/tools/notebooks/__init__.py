"""What notebooks show of our objects: HTML for their methods ``_repr_html_``."""
