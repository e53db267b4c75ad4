"""Two networks of one weight each learn the damping of a double pendulum."""
