"""How programs fail, and whether smaller ones fail so: what `mind-mlir reduce` asks of each."""
