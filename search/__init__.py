"""Decentralised queries. Knows nothing of the node: what it needs is declared in ports.py."""
