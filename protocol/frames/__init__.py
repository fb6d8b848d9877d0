"""The frames of every protocol, one module per protocol; types and bounds only, no behaviour."""
