"""The guard: every application byte that leaves this node passes here, and is in the ledger before its first byte."""
