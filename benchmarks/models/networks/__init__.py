"""Networks of kinds that no library of models offers, written as people write them in torch and in flax."""
