"""The network: one hardened libp2p node. The only package that imports libp2p."""
