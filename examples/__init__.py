"""Programs in Core IR, and a demo that trains one."""
