"""Messages between paired nodes: durable before they are sent, delivered in order and exactly once."""
