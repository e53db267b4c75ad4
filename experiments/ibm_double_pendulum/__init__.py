"""A chaotic double pendulum, identified from marker positions in camera images and forecast from four frames."""
