"""Who this device is, whom its owner trusts, and how two devices become paired."""
