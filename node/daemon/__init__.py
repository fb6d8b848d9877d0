"""The composition root: builds every part of the node, runs them in one nursery and stops them in order."""
