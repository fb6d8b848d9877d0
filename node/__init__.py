"""The node: composition, state and the parts that people meet."""
