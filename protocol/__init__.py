"""Bytes to meaning and back: wire formats and the sans-IO machines that speak them. No clock, socket, random source or
database.
"""
