"""Make a robot simulator agree with the real machine."""
