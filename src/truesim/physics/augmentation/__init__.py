"""Networks within the physics: network classes, heads and memory."""
