"""What the ranks of a mesh do together: sums, exchanges, and the processes that they run in."""
