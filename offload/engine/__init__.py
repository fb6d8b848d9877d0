"""The llama.cpp engine; only the worker process imports it."""
