"""A cart-pole that is learned while it is controlled."""
