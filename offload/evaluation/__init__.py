"""How well a model calls tools: cases, a chooser behind a port, scores and the report."""
