"""Skills: work of several steps whose order, checks and stop conditions are fixed in code."""
