"""Robot model: bodies, joints, actuators, sensors, geoms, their names and the kinematic tree."""
