"""The compiler beside other frameworks: the same workloads, each framework in a process of its own."""
