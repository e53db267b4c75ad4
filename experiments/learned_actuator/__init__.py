"""A learned actuator against a simulated real one: torque labels, and motion only."""
