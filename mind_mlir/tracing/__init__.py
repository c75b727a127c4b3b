"""Functions of Python as programs: what runs once on stand-ins for arrays, and what is recorded then."""
