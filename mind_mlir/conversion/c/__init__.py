"""Programs as readable C99 without dependencies: `module.to_c`."""
