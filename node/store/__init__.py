"""The node's durable state: two encrypted databases, one module per kind of row, the only import of the driver."""
