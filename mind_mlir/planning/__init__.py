"""Plans: what a program sends between processes, holds in memory and takes, on machines that are not here."""
