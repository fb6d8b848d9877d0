"""Inference here, at home, or at a trusted peer. Knows nothing of the node: what it needs is declared in ports.py."""
