"""The package in which the bindings look for Python classes of our dialects; see `mind`."""
