"""Requests that wait for a better answer: drafted here at once, upgraded once when the chosen peer can be reached."""
