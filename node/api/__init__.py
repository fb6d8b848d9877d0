"""The local HTTP API: what the command line, and later the web page, may ask of a running node."""
