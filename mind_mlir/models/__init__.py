"""Models of others: their files of weights, and programs that their frameworks write."""
