"""A learned actuator, trained on a simulated real one from torque labels or from motion only."""
