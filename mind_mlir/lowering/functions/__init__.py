"""Parts of functions that become functions: loop nests, parallel loops, parts of bounded size."""
