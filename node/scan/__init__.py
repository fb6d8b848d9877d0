"""The scan worker: static vectors (and later detectors) in their own boxed process."""
