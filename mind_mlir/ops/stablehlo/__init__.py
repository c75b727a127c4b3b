"""The StableHLO rules of the records that need more than a line; a module a kind of operation."""
