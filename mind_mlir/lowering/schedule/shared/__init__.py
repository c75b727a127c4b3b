"""Products with constants whose rows are alike: sums that many results have in common, in registers."""
