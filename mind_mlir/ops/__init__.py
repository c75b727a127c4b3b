"""One record per operation, one file per family; `registry` finds them."""
