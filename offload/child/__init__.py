"""Child processes in a box: frames, limits and supervision."""
