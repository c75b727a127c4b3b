"""What editors need of their own: grammars, an extension, and what writes their words."""
