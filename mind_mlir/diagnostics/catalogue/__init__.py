"""The entries of the diagnostic catalogue, one file per phase."""
