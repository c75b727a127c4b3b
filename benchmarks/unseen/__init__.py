"""Programs as users of numpy write them, which no schedule was made for, beside others' of the same code."""
