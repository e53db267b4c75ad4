"""A chaotic double pendulum, identified from marker positions in camera pictures and forecast from four frames."""
