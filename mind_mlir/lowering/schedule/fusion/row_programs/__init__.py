"""Row programs: what is done with rows in which pass, how, and the loops that are emitted for it."""
