"""Offline, lan, online: which one is in force, why, and what that opens and closes."""
