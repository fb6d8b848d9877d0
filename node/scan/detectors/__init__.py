"""The detectors of personal data: libraries and models of the extra `guard`, loaded in a process of their own only."""
