"""Functions of arrays that the operators of several frameworks come to: each reader's rules call them."""
