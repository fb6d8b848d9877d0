"""The command line: one file per command, loaded when it is used. Speaks HTTP to the node over its private socket and
nothing else."""
