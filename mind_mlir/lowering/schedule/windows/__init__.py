"""Windows that slide along tensors: products that read through them."""
